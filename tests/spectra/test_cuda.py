"""The same answers on a GPU; these run where there is one."""

from collections import Counter

import pytest
import torch
from benchmarks.attack.certificates import attack, target

from headwise.attention import logits
from headwise.spectra import LogWeights, count, measure
from headwise.spectra.deflation import count_by_deflation
from headwise.spectra.inertia import positive_eigenvalues
from headwise.spectra.measuring import hardmax_rank
from oracles import causal, normal, planted, random_head_logits, svd_rank

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


# Sparse and dense matrices in one batch; at 500 tokens deflation is among the methods taken.
@pytest.mark.parametrize("mask", [lambda x: x, causal])
@pytest.mark.parametrize("n", [40, 150, 500])
def test_counts_agree_with_the_cpu(n, mask):
    logits = torch.cat([
        mask(random_head_logits(n, head_dim, 1, seed=n, scale=scale))
        for scale in (1.0, 0.4, 0.1, 0.03) for head_dim in (3, 8, 64)
    ])  # fmt: skip
    found = count(LogWeights(logits.cuda()))
    assert found.values.tolist() == svd_rank(torch.softmax(logits, -1)).tolist()


def test_matrices_and_reports():
    matrix = normal(2, 60, 40, seed=0)
    assert count(matrix.cuda()).values.tolist() == [40, 40]
    report = measure(LogWeights(random_head_logits(80, 8, 2, seed=1).cuda()))
    assert (
        report.rank.values.tolist()
        == count(LogWeights(random_head_logits(80, 8, 2, seed=1))).values.tolist()
    )
    assert report.stable_rank.shape == torch.Size([2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounded_matrices(dtype):
    logits = random_head_logits(100, 16, 4, seed=2)
    found = count(torch.softmax(logits, -1).to(dtype).cuda())
    truth = svd_rank(torch.softmax(logits, -1))
    assert bool(((found.low <= truth) & (truth <= found.high)).all())


def test_large_dense_matrices_are_deflated():
    values = 10 ** torch.linspace(0, -12, 700, dtype=torch.float64)[None]
    matrix = planted(values, 700, 700, seed=0).cuda()
    found = count_by_deflation(matrix, 3e-8)
    assert found is not None
    assert found.low == found.high == int((values >= 3e-8).sum())


def test_inertia_and_hardmax():
    half = normal(50, 50, seed=3)
    symmetric = (half + half.T).cuda()
    truth = int((torch.linalg.eigvalsh(symmetric) > 0).sum())
    assert positive_eigenvalues(symmetric)[0] == truth
    logits = normal(3, 50, 50, seed=4)
    assert (
        hardmax_rank(LogWeights(logits.cuda())).tolist()
        == hardmax_rank(LogWeights(logits)).tolist()
    )


#: Matrices on which cuSOLVER's singular values lie further off than LAPACK's bound allows.
WRONG_BEFORE = (990000143, 990000156, 990000231, 990000297, 990000329)


@pytest.mark.parametrize("seed", WRONG_BEFORE)
def test_matrices_that_were_counted_wrongly(seed):
    assert not list(attack(target(seed, 50), "cuda", Counter()))


def test_families_made_to_hurt():
    checked = Counter()
    wrong = [w for seed in range(84) for w in attack(target(seed, 20), "cuda", checked)]
    assert not wrong
    assert checked["exact"] > 0.5 * checked["svd"]


def test_a_temperature_whose_inverse_is_infinite_divides_as_on_the_cpu():
    """The GPU multiplied by the inverse, and the logits became infinite or NaN."""
    rng = torch.Generator().manual_seed(0)
    queries, keys = (
        torch.randn(20, 2, dtype=torch.float64, generator=rng) * 2.0**-531 for _ in range(2)
    )
    wanted = logits(queries, keys, temperature=2.0**-1062)
    found = logits(queries.cuda(), keys.cuda(), temperature=2.0**-1062)
    moved = (wanted.values - found.values.cpu()).abs().amax(-1)
    assert bool((moved <= wanted.error + found.error.cpu()).all())
