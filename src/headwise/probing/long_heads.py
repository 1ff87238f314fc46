"""The numbers of one head on a long sequence: the attention matrix is never formed."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

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
from headwise.spectra import LeadingSpectrum, leading_spectrum, spectral_density

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
    plain = replace(view, queries=queries[None, None], keys=keys[None, None])
    mask = plain.mask
    operator = AttentionOperator(
        queries, keys, temperature=view.temperature, mask=mask, dtype=dtype
    )
    device = queries.device
    leading = leading_spectrum(operator, LEADING, steps=STEPS, dtype=dtype, device=device)
    density = spectral_density(
        operator, leading, probes=PROBES, steps=LANCZOS, dtype=dtype, device=device
    )
    facts = moments(queries, keys, temperature=view.temperature, mask=mask)
    effective = density.effective_rank()
    numbers: Numbers = {
        "effective_rank": effective.mean,
        "effective_rank_error": effective.stderr,
        "stable_rank": facts.frobenius**2 / float(leading.values[0]) ** 2,
        "hardmax_rank": float(hardmax_rank(queries, keys, mask=mask)),
        "logit_scale": facts.logit_deviation,
        "output_rank": _output_rank(operator, view.values),
        "rank_low": None,
        "rank_high": None,
        "tokens": float(min(view.shape[-2:])),
    }
    numbers |= _reached(leading, facts.frobenius**2) | pair_numbers(view)
    return HeadNumbers(numbers, excluded, "matrix-free")


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
