"""The whole spectrum by float64 singular value decomposition: the oracle."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.rounding import factorisation_error
from headwise.spectra.spectrum import Spectrum


def svd_spectrum(matrix: Float[Tensor, "*batch n m"]) -> Spectrum:
    """All singular values, computed in float64 whatever the dtype.

    >>> svd_spectrum(torch.diag(torch.tensor([1.0, 2.0]))).values
    tensor([2., 1.], dtype=torch.float64)
    """
    values = torch.linalg.svdvals(matrix.double())
    error = factorisation_error(values[..., 0], max(matrix.shape[-2:]))
    return Spectrum(values, error=error, methods=("svd",) * error.numel())
