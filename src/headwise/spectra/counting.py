"""Count the singular values of at least ε by the cheapest method that can certify the count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from headwise.checks import one_of
from headwise.errors import BadInputError
from headwise.spectra.certificate import Certificate, Counts
from headwise.spectra.dense import (
    DenseChunk,
    Thresholds,
    count_by_svd,
    count_dense,
    dense_chunks,
    flat_batch,
)
from headwise.spectra.dominant import DominantEntries, dominant_entries, dominant_weights
from headwise.spectra.inertia import count_by_inertia
from headwise.spectra.near_hardmax import count_near_hardmax
from headwise.spectra.sources import SMALLEST, LogWeights

METHODS = ("cheapest", "near-hardmax", "dense", "svd", "inertia")

#: An input error beyond this share of ε is counted at ε ± error instead of being part of δ.
SMALL_DOUBT = 1e-3

#: An ε below this (or above its inverse) is counted with everything scaled.
SMALLEST_PLAIN = 1e-60

#: Scaled entries stay below 2 to this power.
LARGEST_EXPONENT = 200

#: Below this size it does not pay to look for sparsity first.
SMALLEST_SPARSE = 16

Counter = Callable[[Thresholds], Counts]


def count_at(source: Tensor | LogWeights, epsilon: float, method: str = "cheapest") -> Counts:
    """Count with the named method, or with the cheapest that can answer."""
    one_of("method", method, METHODS)
    if isinstance(source, Tensor) and not SMALLEST_PLAIN <= epsilon <= 1 / SMALLEST_PLAIN:
        found = _count_scaled(source, epsilon, method)
    else:
        found = _count_plain(source, epsilon, method)
    return found.about(source.dtype, logits=isinstance(source, LogWeights))


def _count_scaled(source: Tensor, epsilon: float, method: str) -> Counts:
    """Scale by a power of two if ε is extreme: squares near ε would leave the range of float64."""
    peak = float(source.abs().max())
    most = LARGEST_EXPONENT - math.frexp(peak)[1] if peak > 0 else LARGEST_EXPONENT
    exponent = min(-math.frexp(epsilon)[1], most)
    # In two steps: 2^1074 is not a float64.
    half, other = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)
    scaled = source.double() * half * other
    if not math.isfinite(peak) or source.dtype != torch.float64:
        scaled, half, other = source, 1.0, 1.0
    found = _count_plain(scaled, epsilon * half * other, method)
    # Scaled back, a positive δ may round to zero.
    delta = (found.delta / half / other).clamp(min=SMALLEST)
    return Counts(found.low, found.high, delta, found.methods)


def _count_plain(source: Tensor | LogWeights, epsilon: float, method: str) -> Counts:
    flat = flat_batch(source)
    batch, size = flat.shape[0], min(flat.shape[-2:])
    sparse = None
    if method == "near-hardmax" or (method == "cheapest" and size >= SMALLEST_SPARSE):
        sparse = _count_sparse(flat, epsilon)
    if sparse is not None and bool(sparse.delta.isfinite().all()):
        return sparse.reshape(source.shape[:-2])
    open_ = torch.ones(batch) if sparse is None else ~sparse.delta.isfinite()
    left = open_.nonzero().flatten()
    if method == "near-hardmax":
        raise BadInputError(
            f"{len(left)} of {batch} matrices are not nearly one-hot",
            hint="leave the method out: the cheapest that can answer is taken",
        )
    counts = dict(enumerate(sparse)) if sparse is not None else {}
    counts.update(_count_rest(flat, left, epsilon, method))
    return Counts.of([counts[i] for i in range(batch)], source.shape[:-2])


def _count_sparse(flat: Tensor | LogWeights, epsilon: float) -> Counts | None:
    """Count the matrices whose rows are nearly one-hot; δ is infinite for the others."""
    find = dominant_weights if isinstance(flat, LogWeights) else dominant_entries
    entries = find(flat, epsilon)  # type: ignore[arg-type]
    if not entries.sparse.any():
        return None
    doubt = torch.from_numpy(entries.doubt)
    return bracketed(lambda at: _near_hardmax(entries, at), epsilon, doubt, min(entries.shape))


def _near_hardmax(entries: DominantEntries, at: Thresholds) -> Counts:
    low, high, delta = count_near_hardmax(entries, at.epsilon.numpy(), at.doubt.numpy())
    delta[~entries.sparse] = math.inf
    return Counts.by("near-hardmax", low, high, delta)


def _count_rest(
    flat: Tensor | LogWeights, chosen: Tensor, epsilon: float, method: str
) -> Iterator[tuple[int, Certificate]]:
    """Count the chosen matrices as dense ones; return their indices and counts."""
    count = {"svd": _by_svd, "inertia": _by_inertia}.get(method, count_dense)
    for chunk in dense_chunks(flat, chosen):
        found = bracketed(
            lambda at, c=chunk: Counts.of(count(c, at)),
            epsilon,
            chunk.doubt() + chunk.scaling * epsilon,
            min(flat.shape[-2:]),
        )
        yield from zip(chunk.numbers.tolist(), found, strict=True)


def _by_svd(chunk: DenseChunk, at: Thresholds) -> list[Certificate]:
    return count_by_svd(chunk.fresh(), at)


def _by_inertia(chunk: DenseChunk, at: Thresholds) -> list[Certificate]:
    matrices, facts = chunk.fresh(), zip(at.epsilon.tolist(), at.doubt.tolist(), strict=True)
    found = [count_by_inertia(one, *fact) for one, fact in zip(matrices, facts, strict=True)]
    # If no factorisation certifies itself, use the SVD.
    return [
        count_by_svd(matrices[i : i + 1], at.only(slice(i, i + 1)))[0] if one is None else one
        for i, one in enumerate(found)
    ]


def bracketed(counter: Counter, epsilon: float, doubt: Tensor, most: int) -> Counts:
    """Count matrices known to within ``doubt``: add it to δ if small, else count at ε ± doubt."""
    wide = doubt > SMALL_DOUBT * epsilon
    if not bool(wide.any()):
        return counter(Thresholds(torch.full_like(doubt, epsilon), doubt))
    narrow = torch.where(wide, 0.0, doubt)
    low = counter(Thresholds(torch.where(wide, epsilon + doubt, epsilon), narrow))
    # If the input error exceeds ε, every singular value may count.
    below = torch.where(wide & (doubt < epsilon), epsilon - doubt, epsilon)
    high = counter(Thresholds(below, narrow))
    doubt, wide = doubt.cpu(), wide.cpu()
    possible = torch.where(doubt >= epsilon, most, high.high)
    delta = doubt + torch.maximum(low.delta, high.delta)
    return Counts(
        low.low,
        torch.where(wide, possible, low.high),
        torch.where(wide, delta, low.delta),
        low.methods,
    )
