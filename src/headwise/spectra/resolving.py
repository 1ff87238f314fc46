"""Compute the whole spectrum of each matrix: by components if nearly one-hot, else by SVD."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headwise.spectra.batches import dense_chunks, flat_batch
from headwise.spectra.dominant import dominant_entries, dominant_weights
from headwise.spectra.near_hardmax import block_rounding, spectrum_near_hardmax
from headwise.spectra.sources import LogWeights
from headwise.spectra.spectrum import Spectrum, svd_spectrum

#: The smallest singular value of interest when entries are dropped.
FINEST = 1e-9

#: Below this size one decomposition is cheaper than looking for components.
SMALLEST_SPARSE = 16


def whole_spectrum(source: Tensor | LogWeights) -> Spectrum:
    """Return all singular values of each matrix, with a bound on their error."""
    flat = flat_batch(source)
    batch, size = flat.shape[0], min(flat.shape[-2:])
    values = torch.zeros(batch, size, dtype=torch.float64)
    error = torch.zeros(batch, dtype=torch.float64)
    sparse = np.zeros(batch, dtype=bool)
    if size >= SMALLEST_SPARSE:
        sparse = _fill_sparse(flat, values, error)
    for chunk in dense_chunks(flat, torch.from_numpy(np.flatnonzero(~sparse))):
        found = svd_spectrum(chunk.fresh())
        values[chunk.numbers] = found.values.cpu()
        error[chunk.numbers] = (found.error + chunk.doubt()).cpu()
    methods = tuple("near-hardmax" if s else "svd" for s in sparse.tolist())
    shape = source.shape[:-2]
    return Spectrum(values.reshape(*shape, size), error.reshape(shape), methods)


def _fill_sparse(flat: Tensor | LogWeights, values: Tensor, error: Tensor) -> np.ndarray:
    """Fill in the rows of the matrices that are nearly one-hot; return which those are."""
    find = dominant_weights if isinstance(flat, LogWeights) else dominant_entries
    entries = find(flat, FINEST)  # type: ignore[arg-type]
    sparse = entries.sparse
    if sparse.any():
        found = torch.from_numpy(spectrum_near_hardmax(entries))
        doubt = torch.from_numpy(
            entries.doubt + entries.moved(found[:, 0].numpy()) + block_rounding(entries)
        )
        values[sparse], error[sparse] = found[sparse], doubt[sparse]
    return sparse
