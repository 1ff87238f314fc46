"""A source as one flat batch, and its matrices in float64, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from headwise.spectra.memory import refuse_if_too_large
from headwise.spectra.rounding import storage_error
from headwise.spectra.sources import LogWeights, refuse_not_finite
from headwise.spectra.weights import softmax_matrix, softmax_rounding, weights_error

#: Dense work on a chunk takes up to this many times its float64 size.
WORKING_COPIES = 5

#: A batch is cut into at least this many chunks, so that extra memory stays below the batch.
FEWEST_CHUNKS = 8

#: Chunks need not be smaller than this, in bytes of float64.
SMALLEST_CHUNK = 2**22


def flat_batch(source: Tensor | LogWeights) -> Tensor | LogWeights:
    """The same matrices with exactly one batch dimension.

    >>> flat_batch(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([6, 4, 4])
    """
    if isinstance(source, LogWeights):
        n = source.shape[-2]
        return LogWeights(
            source.values.reshape(-1, *source.shape[-2:]), source.row_error.reshape(-1, n)
        )
    return source.reshape(-1, *source.shape[-2:])


def dense_chunks(
    source: Tensor | LogWeights, chosen: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The chosen matrices of a flat batch: their numbers, themselves, and their doubt."""
    n, m = source.shape[-2:]
    per_matrix = 8 * n * m
    at_once = max(1, SMALLEST_CHUNK // per_matrix, len(chosen) // FEWEST_CHUNKS)
    device = source.values.device if isinstance(source, LogWeights) else source.device
    refuse_if_too_large(
        f"the rank of a dense {n}×{m} matrix",
        WORKING_COPIES * per_matrix,
        device,
        "use fewer tokens, or hardmax_rank, which streams and never forms the matrix",
    )
    for part in chosen.split(at_once):
        yield part, *matrices_and_doubt(_part(source, part))


def matrices_and_doubt(source: Tensor | LogWeights) -> tuple[Tensor, Tensor]:
    """Float64 matrices, and for each how far it may lie from the one meant.

    >>> matrices_and_doubt(torch.eye(2, dtype=torch.float64)[None])[1]
    tensor([0.], dtype=torch.float64)
    """
    if not isinstance(source, LogWeights):
        refuse_not_finite("the matrix", int((~source.isfinite().all(-1)).sum()))
        return source.double(), storage_error(source)
    matrix = softmax_matrix(source)
    if source.is_exact:
        return matrix, softmax_rounding(source.shape) * torch.linalg.matrix_norm(matrix)
    reach = torch.where(source.values.isfinite(), source.values.abs(), 0).amax(-1).double()
    norm, doubt = torch.linalg.vector_norm(matrix, dim=-1), 1 - matrix.amax(-1)
    return matrix, weights_error(source, norm, doubt, reach)


def _part(source: Tensor | LogWeights, part: Tensor) -> Tensor | LogWeights:
    everything = len(part) == source.shape[0]
    if isinstance(source, LogWeights):
        return source if everything else LogWeights(source.values[part], source.row_error[part])
    return source if everything else source[part]
