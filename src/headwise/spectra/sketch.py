"""Count σ ≥ ε of matrices of low rank by a random sketch, certified by its residual.

With Q an orthonormal basis of AΩ (Ω random, few columns) and B = QᵀA, A = QB + E. The singular
values of QB are those of the small B, and those of A lie within ‖E‖_F of them (Weyl). ‖E‖_F is
computed, so the certificate does not depend on luck: an unlucky Ω leaves a large E, and then
another method counts. Halko, Martinsson and Tropp, SIAM Review 53 (2011), describe the sketch.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.certificate import Certificate
from headwise.spectra.rounding import factorisation_error, roundings, unit_roundoff

#: Columns of Ω, as shares of the size of the matrix, in the order in which they are tried.
SHARES = (1 / 8, 1 / 4)

#: The larger sketch is tried only if the smaller one leaves at most this share of ‖A‖_F.
PROMISING = 1e-5

#: Full rank is worth a try only if the smaller sketch leaves at least this share of ‖A‖_F.
MAYBE_FULL = 1e-2

#: What the sketch and its rounding may add to δ, as a fraction of ε.
LARGEST_DELTA = 1e-3


def count_by_sketch(
    matrices: Float[Tensor, "b n m"],
    epsilon: Float[Tensor, " b"],
    doubt: Float[Tensor, " b"],
    share: float,
) -> tuple[list[Certificate | None], Float[Tensor, " b"]]:
    """Count each float64 matrix from a sketch with this share of its columns.

    Returns:
        The certificates, None where the rank is too large for the sketch; and the residual of each
        sketch as a share of ‖A‖_F.
    """
    n, m = matrices.shape[-2:]
    columns = math.ceil(share * min(n, m))
    basis = torch.linalg.qr(matrices @ _random(m, columns).to(matrices.device))[0]
    small = basis.mT @ matrices
    norm = torch.linalg.matrix_norm(matrices)
    rest = torch.linalg.matrix_norm(torch.baddbmm(matrices, basis, small, alpha=-1))
    found: list[Certificate | None] = [None] * len(matrices)
    # The product QB is rounded too, like sums of ``columns`` terms.
    product = roundings(columns) * unit_roundoff(torch.float64) * math.sqrt(columns) * norm
    near = torch.nonzero(rest + product <= LARGEST_DELTA * epsilon).flatten()
    if len(near):
        values = torch.linalg.svdvals(small[near])
        # Q is orthonormal up to rounding; B is decomposed with rounding.
        factors = factorisation_error((1 + math.sqrt(columns)) * values[:, 0], max(n, m))
        delta = rest[near] + product[near] + factors
        for place, sigma, added in zip(near.tolist(), values, delta.tolist(), strict=True):
            found[place] = _counted(sigma, float(epsilon[place]), float(doubt[place]), added)
    return found, rest / norm


def _counted(sigma: Tensor, epsilon: float, doubt: float, added: float) -> Certificate | None:
    delta = doubt + added
    # Singular values that the sketch does not list are at most δ.
    if not (added <= LARGEST_DELTA * epsilon and delta < epsilon / 2):
        return None
    low, high = int((sigma >= epsilon + delta).sum()), int((sigma >= epsilon - delta).sum())
    return Certificate(low, high, delta, "sketch")


@lru_cache(maxsize=8)
def _random(rows: int, columns: int) -> Tensor:
    """Return Ω, the same in every process, so that results are repeatable."""
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, dtype=torch.float64, generator=generator)
