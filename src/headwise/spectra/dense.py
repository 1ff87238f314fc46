"""Count σ ≥ ε of dense float64 matrices by QR or deflation, and by SVD if these fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headwise.memory import refuse_if_too_large
from headwise.shapes import Float
from headwise.spectra.certificate import Certificate
from headwise.spectra.deflation import (
    Deflated,
    count_by_deflation,
    smallest_singular_value,
    triangles,
)
from headwise.spectra.ranks import numerical_rank, svd_spectrum
from headwise.spectra.sources import (
    LogWeights,
    log_doubt,
    logit_error,
    neglected_couplings,
    refuse_not_finite,
    softmax_matrix,
    softmax_rounding,
    storage_error,
    sum_rounding,
    weights_error,
)

#: Dense work on one matrix needs up to this many times its float64 size.
WORKING_COPIES = 3

#: A batch is cut into at least this many chunks, so that extra memory stays below the batch.
FEWEST_CHUNKS = 8

#: Chunks need not be smaller than this, in bytes of float64.
SMALLEST_CHUNK = 2**22

#: Above this largest weight, the others are summed by themselves: 1 − w loses its digits.
SHARP = 0.9


def flat_batch(source: Tensor | LogWeights) -> Tensor | LogWeights:
    """Reshape to exactly one batch dimension."""
    if isinstance(source, LogWeights):
        error = source.error
        if len(source.shape) == 3 and not isinstance(error, Tensor):
            return source
        if isinstance(error, Tensor):
            error = source.row_error.reshape(-1, source.shape[-2])
        return LogWeights(source.values.reshape(-1, *source.shape[-2:]), error)
    return source.reshape(-1, *source.shape[-2:])


@dataclass(frozen=True, eq=False)
class DenseChunk:
    """A few matrices of a batch: their positions in it, and access to them in float64."""

    numbers: Tensor
    source: Tensor | LogWeights
    # The weights that doubt() needed, for the first call of fresh().
    unused: list[Tensor] = field(default_factory=list)

    def doubt(self) -> Tensor:
        """Bound, for each matrix, its distance from the exact input it stands for."""
        if not isinstance(self.source, LogWeights) or self.source.is_exact:
            return doubt(self.source)
        self.unused[:] = [softmax_matrix(self.source)]
        return _inexact_doubt(self.source, self.unused[0])

    @property
    def scaling(self) -> float:
        """By which share of itself each singular value may be off beyond ``doubt``."""
        return scaling(self.source)

    def fresh(self) -> Tensor:
        """Return a new copy of the matrices, which the caller may overwrite."""
        if isinstance(self.source, LogWeights):
            return self.unused.pop() if self.unused else softmax_matrix(self.source)
        refuse_not_finite("the matrix", int((~self.source.isfinite().all(-1)).sum()))
        return self.source.to(torch.float64, copy=True)


def dense_chunks(source: Tensor | LogWeights, chosen: Tensor) -> Iterator[DenseChunk]:
    """Yield the chosen matrices of a flat batch, a few at a time."""
    if len(chosen) == 0:
        return
    n, m = source.shape[-2:]
    per_matrix = 8 * n * m
    at_once = max(1, SMALLEST_CHUNK // per_matrix, len(chosen) // FEWEST_CHUNKS)
    refuse_if_too_large(
        f"the rank of a dense {n}×{m} matrix",
        WORKING_COPIES * per_matrix,
        _device(source),
        "use fewer tokens, or hardmax_rank, which streams and never forms the matrix",
    )
    for numbers in chosen.split(at_once):
        yield DenseChunk(numbers, _part(source, numbers))


def scaling(source: Tensor | LogWeights) -> float:
    """Return by which share rows may be scaled beyond ``doubt``: the sums of a softmax round."""
    return sum_rounding(source.shape[-1]) if isinstance(source, LogWeights) else 0.0


def doubt(source: Tensor | LogWeights) -> Tensor:
    """Bound, for each matrix of a flat batch, its distance from the exact input it stands for."""
    # For log-weights this holds up to a factor 1 ± ``scaling`` for each row.
    if not isinstance(source, LogWeights):
        return storage_error(source)
    if source.is_exact:
        # Rows of weights have norm at most one.
        bound = softmax_rounding() * math.sqrt(source.shape[-2])
        return torch.full(source.shape[:1], bound, dtype=torch.float64, device=_device(source))
    return _inexact_doubt(source, softmax_matrix(source))


def _inexact_doubt(source: LogWeights, weights: Tensor) -> Tensor:
    eta = logit_error(source, _reach(source))
    norm = torch.linalg.vector_norm(weights, dim=-1)
    return weights_error(source, norm, _log_doubt(source, weights), eta)


def _reach(source: LogWeights) -> Tensor:
    """Return the largest absolute log-weight of each row, which only rounded ones need."""
    if source.dtype == torch.float64:
        return torch.zeros(source.shape[:-1], dtype=torch.float64, device=_device(source))
    return torch.where(source.values.isfinite(), source.values.abs(), 0).amax(-1).double()


def _log_doubt(source: LogWeights, weights: Tensor) -> Tensor:
    """``log_doubt``, from the weights except in rows that are nearly one-hot."""
    top = weights.amax(-1)
    found = (1 - top).log() - top.log()
    sharp = top > SHARP
    if bool(sharp.any()):
        found[sharp] = log_doubt(source.values[sharp].double())
    return found


def _device(source: Tensor | LogWeights) -> torch.device:
    return source.values.device if isinstance(source, LogWeights) else source.device


def _part(source: Tensor | LogWeights, part: Tensor) -> Tensor | LogWeights:
    everything = len(part) == source.shape[0]
    if isinstance(source, LogWeights):
        return source if everything else LogWeights(source.values[part], source.row_error[part])
    return source if everything else source[part]


#: Below this size a singular value decomposition is cheapest.
SMALLEST_QR = 48

#: From this size on deflation after one QR, matrix by matrix, is cheaper than a decomposition.
SMALLEST_ONE_QR = 256

#: From this size on it is so with further factorisations.
SMALLEST_DEFLATION = 384

#: Entries of the matrices that are counted by one method, before it is chosen again.
TOGETHER = 2**14


@dataclass(frozen=True, eq=False)
class Thresholds:
    """ε for each matrix, and a bound on the matrix's distance from the exact input."""

    epsilon: Float[Tensor, " b"]
    doubt: Float[Tensor, " b"]

    def only(self, chosen: Tensor | slice) -> Thresholds:
        """Return the thresholds of the chosen matrices."""
        return Thresholds(self.epsilon[chosen], self.doubt[chosen])


def count_dense(chunk: DenseChunk, at: Thresholds) -> list[Certificate]:
    """Return one certified count per matrix of the chunk."""
    size = min(chunk.source.shape[-2:])
    if size < SMALLEST_QR:
        return count_by_svd(chunk.fresh(), at)
    if size < SMALLEST_DEFLATION:
        return _full_or_svd(chunk.fresh(), at)
    return _deflated_or_svd(chunk, at)


def _deflated_or_svd(chunk: DenseChunk, at: Thresholds) -> list[Certificate]:
    # Popped, so that the callee holds the only reference and can free it.
    matrices = list(chunk.fresh().split(1))[::-1]
    facts = zip(at.epsilon.tolist(), at.doubt.tolist(), strict=True)
    found = [count_by_deflation(matrices.pop(), epsilon, doubt) for epsilon, doubt in facts]
    # Deflation overwrote the matrices, so those it could not count are made again.
    again = chunk.fresh() if None in found else torch.empty(0)
    return [
        count_by_svd(again[i : i + 1], at.only(slice(i, i + 1)))[0]
        if one is None
        else _certificate(one)
        for i, one in enumerate(found)
    ]


def _full_or_svd(matrices: Tensor, at: Thresholds) -> list[Certificate]:
    """Count by QR where the matrix before could be counted so; decompose the others."""
    size = min(matrices.shape[-2:])
    by_qr = _certified if size < SMALLEST_ONE_QR else _deflated_once
    found: list[Certificate] = []
    for part in torch.arange(len(matrices)).split(max(1, TOGETHER // size**2)):
        likely = not found or found[-1].high == size or found[-1].method == "deflation"
        counted = by_qr if likely else count_by_svd
        found += counted(matrices[part], at.only(part))
    return found


def _deflated_once(matrices: Tensor, at: Thresholds) -> list[Certificate]:
    """Deflate after one QR; decompose a matrix that this does not count."""
    counts = []
    for i, matrix in enumerate(matrices.split(1)):
        here = at.only(slice(i, i + 1))
        epsilon, doubt = float(here.epsilon), float(here.doubt)
        one = count_by_deflation(matrix.clone(), epsilon, doubt, rounds=0)
        counts.append(count_by_svd(matrix, here)[0] if one is None else _certificate(one))
    return counts


def _certificate(one: Deflated) -> Certificate:
    return Certificate(one.low, one.high, one.delta, "deflation")


def _certified(matrices: Tensor, at: Thresholds) -> list[Certificate]:
    bound, delta = _smallest_of_candidates(matrices, at)
    full = bound > at.epsilon + delta
    size = min(matrices.shape[-2:])
    others = torch.nonzero(~full).flatten()
    by_svd = iter(count_by_svd(matrices[others], at.only(others)) if len(others) else [])
    return [
        Certificate(size, size, d, "qr") if certain else next(by_svd)
        for d, certain in zip(delta.tolist(), full.tolist(), strict=True)
    ]


def _smallest_of_candidates(matrices: Tensor, at: Thresholds) -> tuple[Tensor, Tensor]:
    """Bound σ_min from below if full rank is possible, else return zero; and its δ."""
    bound, delta = torch.zeros_like(at.epsilon), at.doubt.clone()
    # σ_min is at most the norm of any column of the tall form, and at most any |r_jj|.
    along = -2 if matrices.shape[-2] >= matrices.shape[-1] else -1
    thinnest = torch.linalg.vector_norm(matrices, dim=along).amin(-1)
    chosen = torch.nonzero(thinnest > at.epsilon).flatten()
    if len(chosen):
        triangle, error = triangles(matrices[chosen])
        delta[chosen] += error
        clear = triangle.diagonal(dim1=-2, dim2=-1).abs().amin(-1) > at.epsilon[chosen]
        if bool(clear.any()):
            bound[chosen[clear]] = smallest_singular_value(triangle[clear])
    return bound, delta


def is_host(matrices: Tensor) -> bool:
    """Whether LAPACK decomposes these matrices."""
    return matrices.device.type == "cpu"


def count_by_svd(matrices: Float[Tensor, "b n m"], at: Thresholds) -> list[Certificate]:
    """Count each float64 matrix from its whole spectrum: the reference for other methods."""
    found = svd_spectrum(matrices)
    delta = at.doubt + found.error + neglected_couplings(at.epsilon)
    counts = list(numerical_rank(found, at.epsilon, delta))
    if is_host(matrices):
        return counts
    # The error bound of a GPU is wide; LAPACK decides what it leaves open.
    for i in [number for number, one in enumerate(counts) if one.low != one.high]:
        chosen = slice(i, i + 1)
        at_cpu = Thresholds(at.epsilon[chosen].cpu(), at.doubt[chosen].cpu())
        (counts[i],) = count_by_svd(matrices[chosen].cpu(), at_cpu)
    return counts
