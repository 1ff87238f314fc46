import math

import numpy as np
import pytest
import torch

from headwise import rank
from headwise.errors import BadInputError
from headwise.spectra import LogWeights, Relative, count, measure, spectrum
from headwise.spectra.measuring import distinct_columns, hardmax_rank
from oracles import causal, normal, random_head_logits, singular_values, svd_rank


@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize("shape", [(2, 3, 40, 40), (40, 40), (1, 5, 5)])
def test_a_report_agrees_with_the_decomposition(shape, scale):
    n = shape[-1]
    batch = 1
    for size in shape[:-2]:
        batch *= size
    logits = random_head_logits(n, 4, batch, seed=0, scale=scale).reshape(shape)
    report = measure(LogWeights(logits))
    values = singular_values(torch.softmax(logits, -1))
    assert torch.allclose(report.spectrum.values, values, atol=1e-12)
    assert torch.equal(report.rank.values, (values >= 1e-8).sum(-1))
    assert torch.equal(report.rank.values, count(LogWeights(logits)).values)
    stable = values.square().sum(-1) / values[..., 0].square()
    assert torch.allclose(report.stable_rank, stable)
    shares = values / values.sum(-1, keepdim=True)
    entropy = torch.special.entr(shares).sum(-1)
    assert torch.allclose(report.effective_rank, entropy.exp())
    assert report.energy_rank(0.9).shape == torch.Size(shape[:-2])
    assert report.shape == torch.Size(shape)


def test_the_spectrum_is_known_to_within_its_error():
    for scale in (1.0, 0.1):
        logits = random_head_logits(90, 8, 3, seed=4, scale=scale)
        found = spectrum(LogWeights(logits))
        gap = (found.values - singular_values(torch.softmax(logits, -1))).abs().amax(-1)
        assert bool((gap <= torch.as_tensor(found.error) + 1e-14).all())


def test_relative_tolerance_counts_by_the_largest():
    logits = random_head_logits(50, 4, 2, seed=1, scale=0.1)
    values = singular_values(torch.softmax(logits, -1))
    truth = (values >= 1e-3 * values[:, :1]).sum(-1)
    assert torch.equal(count(LogWeights(logits), Relative(1e-3)).values, truth)


def test_hardmax_rank_is_the_rank_of_the_hardmax():
    for logits in (random_head_logits(37, 3, 6, seed=0), causal(normal(6, 37, 37, seed=1))):
        hard = torch.nn.functional.one_hot(logits.argmax(-1), 37).double()
        assert torch.equal(hardmax_rank(LogWeights(logits)), svd_rank(hard))


def test_hardmax_of_equal_keys_and_of_one_token():
    assert int(hardmax_rank(LogWeights(torch.zeros(5, 5)))) == 1
    assert int(hardmax_rank(LogWeights(torch.zeros(1, 1)))) == 1
    assert distinct_columns(torch.arange(7), 7).item() == 7


def test_cold_softmax_is_hardmax():
    """In units of a small temperature the logits are far apart, and the two ranks meet."""
    logits = random_head_logits(80, 8, 10, seed=3)
    assert torch.equal(count(LogWeights(logits * 1e6)).values, hardmax_rank(LogWeights(logits)))


@pytest.mark.parametrize(
    ("n", "scale", "method"),
    [
        (40, 1.0, "near-hardmax"),
        (40, 0.2, "svd"),
        (100, 0.1, "qr"),
        (200, 0.001, "svd"),
        (400, 0.02, "deflation"),
    ],
)
def test_measure_and_count_give_the_same_interval(n, scale, method):
    logits = LogWeights(random_head_logits(n, 4, 2, seed=6, scale=scale))
    counted, measured = count(logits), measure(logits)
    assert set(counted.methods) == {method}
    assert torch.equal(counted.low, measured.rank.low)
    assert torch.equal(counted.high, measured.rank.high)
    truth = (singular_values(torch.softmax(logits.values, -1)) >= 1e-8).sum(-1)
    assert bool(((counted.low <= truth) & (truth <= counted.high)).all())


@pytest.fixture
def other_default_device():
    """As torch.set_default_device("cuda") would, on a machine without one."""
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@pytest.mark.parametrize("size", [5, 20, 60, 300])
@pytest.mark.usefixtures("other_default_device")
def test_matrices_are_counted_where_they_are_whatever_the_default_device(size):
    matrix = torch.eye(size, dtype=torch.float64, device="cpu")
    smooth = LogWeights(torch.zeros(size, size, dtype=torch.float64, device="cpu"))
    for method in ("cheapest", "svd", "inertia"):
        assert int(count(matrix, method=method)) == size
    assert int(measure(matrix).rank) == size
    assert int(count(smooth)) == int(measure(smooth).rank) == 1
    assert spectrum(matrix).values.device.type == "cpu"


@pytest.mark.usefixtures("other_default_device")
def test_queries_and_keys_are_measured_whatever_the_default_device():
    queries = torch.ones(5, 2, dtype=torch.float64, device="cpu")
    assert int(rank(queries=queries, keys=queries, mask="causal")) == 5
    assert int(rank(np.eye(3))) == 3


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-15, 1e-11, 1.0, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("n", [5, 20, 40])
def test_ranks_do_not_depend_on_the_unit(n, scale):
    """A power of two changes no digit, so every rank but the absolute one stays what it was."""
    scale = 2.0 ** round(math.log2(scale))
    sparse = torch.eye(n, dtype=torch.float64) + 0.5 * torch.eye(n, dtype=torch.float64).roll(1, 0)
    for matrix in (sparse, normal(n, n, seed=n), sparse.tril()):
        one, other = (measure(unit * matrix, Relative(0.3)) for unit in (1.0, scale))
        assert torch.equal(one.rank.values, other.rank.values)
        for name in ("stable_rank", "effective_rank"):
            torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=1e-9, atol=0)
        assert torch.equal(one.energy_rank(0.7), other.energy_rank(0.7))


def test_a_huge_matrix_does_not_spoil_a_batch():
    batch = torch.stack([torch.eye(20), torch.eye(20), torch.zeros(20, 20)]).double()
    batch[1] *= 1e200
    assert measure(batch).stable_rank.tolist() == pytest.approx([20, 20, 0])


def test_the_arg_max_of_unknown_log_weights_is_refused():
    with pytest.raises(BadInputError, match="of 1 rows are known to within infinity only"):
        hardmax_rank(LogWeights(torch.eye(2).double(), torch.tensor([0.0, math.inf]).double()))
