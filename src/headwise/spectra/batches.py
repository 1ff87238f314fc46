"""Flatten a source to one batch dimension, and give its matrices in float64, a few at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.memory import refuse_if_too_large
from headwise.spectra.rounding import storage_error
from headwise.spectra.sources import LogWeights, refuse_not_finite
from headwise.spectra.weights import (
    log_doubt,
    logit_error,
    softmax_matrix,
    softmax_rounding,
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

    def doubt(self) -> Tensor:
        """Bound, for each matrix, its distance from the exact input it stands for."""
        return doubt(self.source)

    def fresh(self) -> Tensor:
        """Return a new copy of the matrices, which the caller may overwrite."""
        if isinstance(self.source, LogWeights):
            return softmax_matrix(self.source)
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


def doubt(source: Tensor | LogWeights) -> Tensor:
    """Bound, for each matrix of a flat batch, its distance from the exact input it stands for."""
    if not isinstance(source, LogWeights):
        return storage_error(source)
    if source.is_exact:
        # Rows of weights have norm at most one.
        bound = softmax_rounding(source.shape) * math.sqrt(source.shape[-2])
        return torch.full(source.shape[:1], bound, dtype=torch.float64, device=_device(source))
    weights = softmax_matrix(source)
    reach = torch.where(source.values.isfinite(), source.values.abs(), 0).amax(-1).double()
    eta = logit_error(source, reach)
    norm = torch.linalg.vector_norm(weights, dim=-1)
    return weights_error(source, norm, _log_doubt(source, weights), eta)


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
