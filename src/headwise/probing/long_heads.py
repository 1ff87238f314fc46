"""The numbers of one head on a long sequence: the attention matrix is never formed."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from headwise.attention.grid import Grid
from headwise.attention.masks import Additive, Mask
from headwise.attention.moments import moments
from headwise.attention.operator import AttentionOperator, hardmax_rank
from headwise.attention.view import AttentionView
from headwise.probing.numbers import (
    COARSE,
    HeadNumbers,
    Numbers,
    output_rank_of,
    pair_numbers,
    without_masked_rows,
)
from headwise.spectra import (
    Estimate,
    LeadingSpectrum,
    SpectralDensity,
    leading_spectrum,
    spectral_density,
)

#: Leading singular values, block steps, probes and Lanczos steps for each head.
LEADING, STEPS, PROBES, LANCZOS = 32, 6, 16, 24


def long_numbers(view: AttentionView) -> HeadNumbers:
    """Measure one head on one long sequence in O(n·(d + k)) memory.

    Products are taken in float64 on a CPU and in float32 on a GPU.

    Args:
        view: A view without padding and without softcap or sinks, (1, 1, n, m).

    Returns:
        The numbers. Ranks at a tolerance are None unless the leading values reach it.
    """
    view, excluded = without_masked_rows(view)
    dtype = torch.float32 if view.queries.is_cuda else torch.float64
    queries, keys = view.queries[0, 0].to(dtype), view.keys[0, 0].to(dtype)
    mask = _of_one_matrix(view)
    operator = AttentionOperator(
        queries, keys, temperature=view.temperature, mask=mask, dtype=dtype
    )
    device = queries.device
    leading = leading_spectrum(operator, LEADING, steps=STEPS, dtype=dtype, device=device)
    density = spectral_density(
        operator, leading, probes=PROBES, steps=LANCZOS, dtype=dtype, device=device
    )
    facts = moments(queries, keys, temperature=view.temperature, mask=mask)
    effective = _extrapolated(density)
    numbers: Numbers = {
        "effective_rank": effective.mean,
        "effective_rank_error": effective.stderr,
        "stable_rank": facts.frobenius**2 / float(leading.values[0]) ** 2,
        # A bias is added to logits, which are scores over the temperature.
        "hardmax_rank": float(hardmax_rank(queries / view.temperature, keys, mask=mask)),
        "logit_scale": facts.logit_deviation,
        "output_rank": _output_rank(operator, view.values),
        "rank_low": None,
        "rank_high": None,
        "tokens": float(min(view.shape[-2:])),
    }
    numbers |= _reached(leading, facts.frobenius**2) | pair_numbers(view)
    return HeadNumbers(numbers, excluded, "matrix-free")


def _of_one_matrix(view: AttentionView) -> Mask:
    """Return the mask for queries (n, d) and keys (m, d): a tensor loses its leading dimensions."""
    if not view.mask.has_tensor:
        return view.mask
    grid = Grid.whole(view.shape, view.queries.device)
    zeros = torch.zeros(1, 1, 1, 1, dtype=torch.float64, device=grid.device).expand(grid.shape)
    return Additive(view.mask.apply(zeros, grid)[0, 0])


def _extrapolated(density: SpectralDensity) -> Estimate:
    """Return the effective rank at infinitely many Lanczos steps.

    Singular values crowd at zero, where the entropy is not smooth. What is missing is then in
    proportion to 1 / steps, so the second half of the steps changes it by as much as is left.
    """
    half = replace(density, nodes=density.coarser[0], weights=density.coarser[1])
    found, before = density.effective_rank(), half.effective_rank()
    return replace(found, mean=max(1.0, 2 * found.mean - before.mean))


def _reached(leading: LeadingSpectrum, energy: float) -> Numbers:
    """Return ranks that the leading values decide: those whose threshold they pass."""
    values, residuals = leading.values.cpu(), leading.residuals.cpu()
    sure = int((residuals <= 1e-3 * values).cumprod(0).sum())
    held = values[:sure].square().cumsum(0) >= 0.9 * energy
    below = (values[:sure] < COARSE).nonzero().flatten()
    return {
        "energy_90": float(held.int().argmax()) + 1 if bool(held.any()) else None,
        "coarse_rank": float(below[0]) if len(below) else None,
    }


def _output_rank(operator: AttentionOperator, values: Tensor | None) -> float | None:
    if values is None:
        return None
    return output_rank_of(operator.matmat(values[0, 0].to(operator.dtype)).double())
