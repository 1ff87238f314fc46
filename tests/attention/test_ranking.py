"""``rank`` in Python: every kind of input, and the same parameters as the command."""

import inspect
import json

import numpy as np
import pytest
import torch

import headwise
from headwise.attention import Causal
from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import logits, softmax_matrix
from headwise.cli.rank import rank as command
from headwise.errors import BadInputError, ParameterError
from headwise.spectra import DtypeFloor, LogWeights, Relative


@pytest.fixture(scope="module")
def head():
    queries, keys = gaussian_heads(1, 41, width=53, head_dim=7, seed=3)
    return queries[0], keys[0]


def svd_rank(matrix, epsilon=1e-8):
    return int((torch.linalg.svdvals(matrix.double()) >= epsilon).sum())


def test_the_command_has_the_same_parameters():
    ours, theirs = (set(inspect.signature(f).parameters) for f in (headwise.rank, command))
    assert ours - {"progress"} == theirs - {"as_json"}


def test_every_kind_of_source_has_the_same_rank(tmp_path, head):
    matrix, values = softmax_matrix(*head), logits(*head).values
    np.save(tmp_path / "a.npy", matrix.numpy())
    path = tmp_path / "a.npy"
    found = [headwise.rank(source) for source in (matrix, matrix.numpy(), path, str(path))]
    found += [headwise.rank(values, logits=True), headwise.rank(LogWeights(values))]
    found += [headwise.rank(queries=head[0], keys=head[1].numpy())]
    expected = svd_rank(matrix)
    assert 1 < expected < 41
    assert [int(one) for one in found] == [expected] * 7
    sigma = torch.linalg.svdvals(matrix)
    assert all(torch.allclose(one.singular_values[0], sigma, atol=1e-12) for one in found)


def test_every_kind_of_mask_is_the_same_mask(tmp_path, head):
    lower = torch.ones(41, 41, dtype=torch.bool).tril()
    np.save(tmp_path / "m.npy", lower.numpy())
    masks = ["causal", Causal(), lower, lower.numpy(), tmp_path / "m.npy"]
    found = [headwise.rank(queries=head[0], keys=head[1], mask=m, temperature=20.0) for m in masks]
    expected = svd_rank(softmax_matrix(*head, temperature=20.0, mask=lower))
    assert [int(one) for one in found] == [expected] * 5
    assert [one.mask for one in found] == ["causal"] * 2 + ["given"] * 2 + [str(masks[-1])]
    assert found[0].temperature == 20.0


@pytest.mark.parametrize(
    ("rule", "named", "expected"),
    [(Relative(1e-3), "relative:1e-3", 2), (DtypeFloor(), "dtype", 4), (1e-3, "1e-3", 3)],
)
def test_a_tolerance_is_a_rule_or_its_name(rule, named, expected):
    planted = torch.diag(torch.tensor([100.0, 1.0, 1e-2, 1e-4] + [0.0] * 37).double())
    assert int(headwise.rank(planted, tolerance=rule)) == expected
    assert int(headwise.rank(planted, tolerance=named)) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"queries": torch.eye(2)},
        {"source": torch.eye(2), "queries": torch.eye(2)},
        {"source": torch.eye(2), "mask": torch.eye(2)},
        {"source": torch.eye(2), "name": "a"},
        {"queries": torch.eye(2), "keys": torch.eye(2), "logits": True},
        {"queries": torch.eye(2), "keys": torch.eye(2), "mask": "window:0"},
        {"source": torch.eye(2), "tolerance": "small"},
    ],
)
def test_wrong_parameters_raise_without_naming_options(wrong):
    with pytest.raises(ParameterError) as raised:
        headwise.rank(**wrong)
    assert "--" not in str(raised.value)


def test_the_reason_names_the_dtype_that_was_stored(head):
    found = headwise.rank(queries=head[0].bfloat16(), keys=head[1].bfloat16()).rows[0].rank
    assert found.exact or found.reason.startswith("bfloat16 hides")
    rounded = headwise.rank(softmax_matrix(*head).bfloat16()).rows[0].rank
    assert rounded.reason.startswith("bfloat16 hides")


def test_a_batch_keeps_its_order_and_has_no_single_rank():
    diagonals = torch.tensor([[1.0] * rank + [0.0] * (5 - rank) for rank in (5, 2, 3, 1)])
    found = headwise.rank(torch.diag_embed(diagonals).double().reshape(2, 2, 5, 5))
    assert [row.rank.low for row in found.rows] == [5, 2, 3, 1]
    assert [row.index for row in found.rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(repr(found)) < 300
    with pytest.raises(BadInputError, match="expected one matrix, got 4"):
        int(found)


def test_a_figure_shows_the_singular_values_and_the_tolerance(tmp_path):
    found = headwise.rank(torch.diag(torch.tensor([2.0, 1.0, 0.0]).double()))
    axes = found.plot(tmp_path / "spectrum.png").axes[0]
    assert list(axes.lines[0].get_ydata()) == [2.0, 1.0]
    assert any(set(line.get_ydata()) == {1e-8} for line in axes.lines)
    assert (tmp_path / "spectrum.png").stat().st_size > 0


def test_a_frame_has_one_row_per_matrix():
    pytest.importorskip("pandas")
    frame = headwise.rank(torch.eye(3).double().expand(2, 3, 3)).to_frame()
    assert list(frame["low"]) == [3, 3]
    assert {"index", "high", "delta", "method", "reason", "effective_rank"} <= set(frame)


def test_a_result_is_written_as_json_with_one_object_per_matrix():
    found = headwise.rank(torch.eye(3).double().expand(2, 3, 3))
    written = json.loads(json.dumps(found.as_json()))
    assert [one["index"] for one in written] == [[0], [1]]
    assert written[0]["rank"] == {"low": 3, "high": 3} and written[0]["shape"] == [3, 3]
    one = headwise.rank(torch.eye(3).double()).as_json()
    assert "index" not in one
    assert one["inputs"] == {"logits": False, "mask": "none", "tolerance": "1e-8"}


@pytest.mark.parametrize(
    ("tolerance", "spelled"),
    [(1e-8, "1e-8"), (Relative(1e-6), "relative:1e-6"), (DtypeFloor(), "dtype"), ("1e-3", "1e-3")],
)
def test_json_spells_a_tolerance_as_the_command_takes_it(tolerance, spelled):
    found = headwise.rank(torch.eye(3).double(), tolerance=tolerance).as_json()
    assert found["inputs"]["tolerance"] == spelled


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32])
def test_the_dtype_is_the_one_that_was_stored(tmp_path, dtype):
    matrix = torch.eye(3).to(dtype)
    np.save(tmp_path / "a.npy", matrix.numpy())
    for source in (matrix, matrix.numpy(), tmp_path / "a.npy"):
        found = headwise.rank(source)
        assert found.dtype == dtype and int(found) == 3
    assert headwise.rank(queries=matrix, keys=matrix.float()).dtype == torch.float32


def test_a_mask_of_float_zeros_and_ones_is_refused(tmp_path):
    """Added to the logits it would mask nothing; booleans are meant."""
    scores = torch.randn(5, 5, dtype=torch.float64)
    np.save(tmp_path / "m.npy", np.tri(5))
    for mask in (np.tri(5), torch.ones(5, 5).tril(), tmp_path / "m.npy"):
        with pytest.raises(BadInputError, match="all 0 or 1; save it as bool"):
            headwise.rank(scores, logits=True, mask=mask)
    with pytest.raises(BadInputError, match="save it as bool"):
        logits(scores, scores, mask=torch.ones(5, 5).tril())
    for mask in (np.tri(5, dtype=bool), np.where(np.tri(5), 0.0, -np.inf), np.zeros((5, 5))):
        assert headwise.rank(scores, logits=True, mask=mask)


def test_a_layer_adds_floats_as_torch_does():
    """Floats of zeros and ones are a valid attn_mask of torch; its meaning is kept."""
    layer = headwise.mha(headwise.HeadGeometry.standard(8, heads=2))
    tokens = torch.randn(1, 5, 8)
    added = layer(tokens, tokens, tokens, attn_mask=torch.ones(5, 5).tril())[1]
    assert bool((added > 0).all())
