"""Matrix-free spectra against dense float64: planted spectra, attention, degenerate cases."""

import math

import pytest
import torch

from headwise.attention import AttentionOperator, softmax_matrix
from headwise.attention.moments import moments
from headwise.errors import ParameterError
from headwise.spectra import (
    DenseOperator,
    Spectrum,
    effective_rank,
    leading_spectrum,
    spectral_density,
)
from oracles import normal

MASKS = ("none", "causal", "causal+window:40")


def planted(values, n=131, m=97, seed=0):
    u, v = (torch.linalg.qr(normal(size, size, seed=seed + size)).Q for size in (n, m))
    count = len(values)
    return u[:, :count] @ torch.diag(values) @ v[:, :count].mT


def attention(n, d, mask, temperature):
    q, k = normal(n, d, seed=1), normal(n, d, seed=2)
    given = {"temperature": temperature, "mask": mask}
    return AttentionOperator(q, k, **given), softmax_matrix(q, k, **given), (q, k, given)


def test_planted_values_are_found():
    values = 0.7 ** torch.arange(60.0, dtype=torch.float64)
    found = leading_spectrum(DenseOperator(planted(values)), 8, steps=4)
    torch.testing.assert_close(found.values, values[:8], atol=1e-10, rtol=0)
    assert float(found.residuals.max()) < 1e-6
    image = planted(values) @ found.right
    torch.testing.assert_close(torch.linalg.vector_norm(image, dim=0), values[:8])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("temperature", [8.0, 0.6])
@pytest.mark.parametrize("n", [60, 509, 1024])
def test_attention_has_the_values_of_the_matrix(n, mask, temperature):
    operator, matrix, (q, k, given) = attention(n, 16, mask, temperature)
    dense = torch.linalg.svdvals(matrix)
    found = leading_spectrum(operator, 12, steps=8)
    # Every value lies within its residual of a singular value, and the first few have settled.
    apart = (found.values[:, None] - dense).abs().amin(1)
    assert bool((apart <= found.residuals + 1e-10).all())
    torch.testing.assert_close(found.values[:3], dense[:3], rtol=2e-3, atol=0)
    facts = moments(q, k, **given)
    assert facts.frobenius == pytest.approx(float(matrix.norm()), rel=1e-12)
    logits = torch.log(matrix)
    seen = (q @ k.mT / temperature)[logits.isfinite() & (matrix > 0)]
    assert facts.logit_deviation == pytest.approx(float(seen.std()), rel=1e-9)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("temperature", [4.0, 0.6])
def test_effective_rank_is_within_its_error(mask, temperature):
    operator, matrix, _ = attention(512, 16, mask, temperature)
    wanted = float(effective_rank(Spectrum(torch.linalg.svdvals(matrix))))
    leading = leading_spectrum(operator, 24, steps=6)
    for seed in range(2):
        found = spectral_density(operator, leading, probes=16, steps=24, seed=seed).effective_rank()
        assert abs(found.mean - wanted) < 4 * found.stderr + 1e-3 * wanted
        assert found.stderr < 0.1 * wanted


def test_density_counts_the_values_between_edges():
    values = torch.cat([torch.full((30,), 1.0), torch.full((40,), 0.01)]).double()
    matrix = planted(values, 97, 97)
    edges = torch.tensor([1e-4, 0.1, 10.0], dtype=torch.float64)
    density = spectral_density(DenseOperator(matrix), probes=40, steps=10)
    counts, errors = density.counts(edges)
    for found, error, wanted in zip(counts, errors, (40, 30), strict=True):
        assert abs(float(found) - wanted) < 4 * float(error) + 0.5


@pytest.mark.parametrize(
    ("matrix", "wanted"),
    [
        (torch.ones(7, 7).double() / 7, 1.0),
        (torch.eye(9).double(), 1.0),
        (torch.ones(1, 1).double(), 1.0),
        (torch.zeros(5, 5).double(), 0.0),
    ],
)
def test_degenerate_matrices(matrix, wanted):
    found = leading_spectrum(DenseOperator(matrix), 3, steps=5)
    assert float(found.values[0]) == pytest.approx(wanted, abs=1e-12)
    assert bool(found.values.isfinite().all())


def test_low_precision_says_what_it_cannot_resolve():
    values = torch.logspace(0, -12, 40, dtype=torch.float64)
    matrix = planted(values)
    exact = leading_spectrum(DenseOperator(matrix), 40, steps=2)
    coarse = leading_spectrum(DenseOperator(matrix.float()), 40, steps=2, dtype=torch.float32)
    assert exact.resolved == 40
    assert 10 < coarse.resolved < 30
    resolved = coarse.values[: coarse.resolved]
    torch.testing.assert_close(resolved, values[: coarse.resolved], rtol=0, atol=coarse.floor)


def test_bad_numbers_are_refused():
    with pytest.raises(ParameterError, match="at least one value"):
        leading_spectrum(DenseOperator(torch.eye(3)), 0)
    assert math.isnan(
        spectral_density(DenseOperator(torch.eye(3).double()), probes=1).effective_rank().stderr
    )


def test_autocast_does_not_round_the_products():
    operator, _, (q, k, given) = attention(200, 16, "none", 4.0)
    short = AttentionOperator(q, k, **given, dtype=torch.float32)
    block = normal(200, 3, seed=5).float()

    def found():
        values = leading_spectrum(short, 4, dtype=torch.float32).values
        density = spectral_density(short, probes=2, dtype=torch.float32).nodes
        sizes = torch.tensor([short.frobenius(), moments(q.float(), k.float()).logit_deviation])
        return short.matmat(block), short.rmatmat(block), values, density, sizes

    wanted = found()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for one, other in zip(found(), wanted, strict=True):
            assert torch.equal(one, other)
    assert torch.allclose(wanted[2], leading_spectrum(operator, 4).values, atol=1e-5)
