"""What is known before a geometry is chosen: measured on tokens, or the law at two numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwise.advice.evidence import MOST_LENGTH, Evidence
from headwise.advice.question import checked_size
from headwise.advice.reasons import NEARLY_ORTHONORMAL
from headwise.advice.theory_curve import law_curve
from headwise.errors import BadInputError
from headwise.masks import MaskName, checked_mask

if TYPE_CHECKING:
    from headwise.advice.curves import RankCurve
    from headwise.advice.embedding import TokenSet
    from headwise.advice.measuring import Sampling


def numbers_evidence(
    length: int | float, width: int | float, mask: MaskName = "none", *, assumed: bool = False
) -> Evidence:
    """What is known from a length, named or assumed, and a width: the law.

    >>> numbers_evidence(128, 64).curves[0].start
    'law'
    """
    n = checked_size("the length", length, 2, 10**12)
    d = checked_size("the width", width, 2, 10**6)
    checked_mask(mask)
    named = ", assumed since the config names no length" if assumed else ""
    words = f"{n:,} tokens{named}, width {d}{_mask_words(mask)}: the finite law, no data"
    return Evidence(words, n, d, (law_curve(n, d, mask),), None, 0, mask)


def evidence_of(tokens: Any, width: int | None, sampling: Sampling) -> Evidence:
    """What is measured of tokens: their statistics and rank curves from two starts.

    >>> import torch
    >>> from headwise.advice.measuring import Sampling
    >>> [curve.start for curve in evidence_of(torch.eye(8), None, Sampling()).curves]
    ['model', 'paper', 'law']
    """
    from headwise.advice.tokens import token_statistics

    found = _as_token_set(tokens, width)
    short = replace(found, values=found.values[:, :MOST_LENGTH])
    statistics = token_statistics(short, sampling.seed)
    curves = _measured(short, sampling)
    if statistics.cosine_spread < NEARLY_ORTHONORMAL:
        curves += (law_curve(short.length, short.width, sampling.mask),)
    cut = f" (the first {MOST_LENGTH} of {found.length})" if found.length > MOST_LENGTH else ""
    many = f"{found.sequences:,} sequence{'s' * (found.sequences != 1)}"
    words = f"{found.name}: {many} of {short.length} tokens{cut}"
    words += f", width {found.width}{_mask_words(sampling.mask)}"
    size, sizes = (short.length, found.width), (found.declared, found.length)
    return Evidence(words, *size, curves, statistics, sampling.seed, sampling.mask, *sizes)


def _measured(tokens: TokenSet, sampling: Sampling) -> tuple[RankCurve, ...]:
    """Both starts under the mask. Under a causal one the model's start is also measured without.

    A triangular matrix with a positive diagonal is of full rank whatever the head can do, so
    where saturation is read the mask must not be.
    """
    from headwise.advice.measuring import measured_curve

    curves = tuple(measured_curve(tokens, start, sampling) for start in ("model", "paper"))
    if sampling.mask == "none":
        return curves
    return measured_curve(tokens, "model", replace(sampling, mask="none")), *curves


def _mask_words(mask: MaskName) -> str:
    return ", causal mask" if mask == "causal" else ""


def _as_token_set(tokens: Any, width: int | None) -> TokenSet:
    import torch

    from headwise.advice.embedding import TokenSet, token_set

    if isinstance(tokens, TokenSet):
        return tokens
    if width is not None:
        checked_size("the width", width, 2, 10**6)
    try:
        values = torch.as_tensor(tokens)
    except (TypeError, ValueError, RuntimeError):
        raise BadInputError(
            f"tokens of type {type(tokens).__name__} came",
            hint="pass a tensor or an array: vectors (batch, sequence, width), or ids",
        ) from None
    return token_set(values, width)
