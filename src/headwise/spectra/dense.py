"""Count σ ≥ ε of dense float64 matrices by QR or deflation, and by SVD if these fail."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.batches import DenseChunk
from headwise.spectra.certificate import Certificate
from headwise.spectra.deflation import (
    count_by_deflation,
    smallest_singular_value,
    triangles,
)
from headwise.spectra.ranks import numerical_rank
from headwise.spectra.spectrum import svd_spectrum

#: Below this size a singular value decomposition is cheapest.
SMALLEST_QR = 48

#: From this size on deflation, matrix by matrix, is cheaper than a decomposition.
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
        else Certificate(one.low, one.high, one.delta, "deflation")
        for i, one in enumerate(found)
    ]


def _full_or_svd(matrices: Tensor, at: Thresholds) -> list[Certificate]:
    """Certify full rank by QR where the matrix before had it; decompose the others."""
    size = min(matrices.shape[-2:])
    found: list[Certificate] = []
    for part in torch.arange(len(matrices)).split(max(1, TOGETHER // size**2)):
        likely = not found or found[-1].high == size
        counted = _certified if likely else count_by_svd
        found += counted(matrices[part], at.only(part))
    return found


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


def count_by_svd(matrices: Float[Tensor, "b n m"], at: Thresholds) -> list[Certificate]:
    """Count each float64 matrix from its whole spectrum: the reference for other methods."""
    found = svd_spectrum(matrices)
    return list(numerical_rank(found, at.epsilon, at.doubt + found.error))
