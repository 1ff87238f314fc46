"""The best rank-r replacement of a vector, in closed form.

Replace a random vector x by P x with rank P ≤ r. Judge the change by directions g that are
independent of x, with C = E x xᵀ and G = E g gᵀ:

    loss(P) = E (gᵀ(x − P x))² = tr(G (I − P) C (I − P)ᵀ).

With C^½ G C^½ = V Λ Vᵀ (λ descending) the least loss is λ_{r+1} + … + λ_d, and
P = C^½ V_r V_rᵀ C^−½ attains it. By Eckart and Young: the loss is ‖G^½ C^½ − G^½ P C^½‖_F², and
G^½ P C^½ has rank ≤ r. The same statement serves every cut:

| cut | x | g |
|---|---|---|
| queries and keys | key | queries of all heads that share the key |
| values and output | mixed value | rows of W_O |
| either, by the loss of a model | key or value | gradient of the loss with respect to it |
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import ParameterError
from headwise.report.results import short_repr
from headwise.shapes import Float

#: Directions whose share of the largest variance is below this are rounding.
_FLOOR = 1e-13


@dataclass(frozen=True, eq=False)
class Factors:
    """The best maps of every rank: keep ``compress[:r] @ x``, restore with ``expand[:, :r]``.

    Attributes:
        losses: (d + 1,) the least loss at rank 0, 1, … d.
        compress: (d, d); the first r rows make the r numbers to keep.
        expand: (d, d); the first r columns restore the vector.
    """

    losses: Float[Tensor, " k"]
    compress: Float[Tensor, "d d"]
    expand: Float[Tensor, "d d"]

    __repr__ = short_repr

    def maps(self, rank: int) -> tuple[Float[Tensor, "r d"], Float[Tensor, "d r"]]:
        """Return the maps of a rank, scaled so that the columns of ``expand`` are orthonormal.

        Args:
            rank: From 0 to d. At d both maps are the identity.

        Returns:
            compress (rank, d) and expand (d, rank).

        Raises:
            ParameterError: The rank is out of range.
        """
        d = len(self.compress)
        if not 0 <= rank <= d:
            raise ParameterError(
                f"expected a rank from 0 to {d}, got {rank}", hint="pass a rank in that range"
            )
        if rank == d:
            return torch.eye(d).to(self.compress), torch.eye(d).to(self.compress)
        basis, triangle = torch.linalg.qr(self.expand[:, :rank])
        return triangle @ self.compress[:rank], basis


def best_factors(moment: Float[Tensor, "d d"], metric: Float[Tensor, "d d"]) -> Factors:
    """Return the maps that lose least at every rank.

    Args:
        moment: C = E x xᵀ, positive semidefinite.
        metric: G = E g gᵀ, positive semidefinite.

    Returns:
        Factors in float64. Directions in which x never varies cost nothing and come last.

    Example:
        >>> found = best_factors(torch.diag(torch.tensor([1.0, 9.0])), torch.eye(2))
        >>> found.losses
        tensor([10.,  1.,  0.], dtype=torch.float64)
        >>> compress, expand = found.maps(1)
        >>> (expand @ compress).diagonal().round().abs()
        tensor([0., 1.], dtype=torch.float64)
    """
    size, directions = _spectrum(moment)
    real = size > _FLOOR * size[-1:].sum() + torch.finfo(torch.float64).tiny
    size, directions = size[real], directions[:, real]
    half = directions * size.sqrt()
    weights, order = torch.linalg.eigh(half.T @ metric.double() @ half)
    weights, order = weights.flip(0).clamp_min(0), order.flip(1)
    expand, compress = half @ order, (directions * size.rsqrt() @ order).T
    return _completed(weights, compress, expand)


def _spectrum(moment: Tensor) -> tuple[Tensor, Tensor]:
    moment = moment.double()
    return torch.linalg.eigh((moment + moment.T) / 2)


def _completed(weights: Tensor, compress: Tensor, expand: Tensor) -> Factors:
    """Add the directions of no variance, so that the full rank restores every vector."""
    d, known = expand.shape
    losses = torch.zeros(d + 1, dtype=torch.float64, device=expand.device)
    losses[:known] = weights.flip(0).cumsum(0).flip(0)
    if known == d:
        return Factors(losses, compress, expand)
    # I − P has rank d − known: any of its factorisations completes the identity.
    left, size, right = torch.linalg.svd(
        torch.eye(d, dtype=torch.float64, device=expand.device) - expand @ compress
    )
    missing = d - known
    more = left[:, :missing] * size[:missing]
    return Factors(losses, torch.cat([compress, right[:missing]]), torch.cat([expand, more], dim=1))


def refitted_output(
    output: Float[Tensor, "o d"],
    moment: Float[Tensor, "d d"],
    compress: Float[Tensor, "r d"],
    expand: Float[Tensor, "d r"],
) -> tuple[Float[Tensor, "o r"], float]:
    """Fit the output map again to compressed inputs, by least squares.

    Given what is kept, this is the least E‖W z − W' D z‖² over all W'. Where z does not vary,
    W' stays W times ``expand``.

    Args:
        output: W, the map to imitate.
        moment: E z zᵀ of its inputs z, all heads together.
        compress: D, block by block what is kept of each head.
        expand: What restores z from D z, block by block.

    Returns:
        W' and the loss it leaves.
    """
    output, moment = output.double(), moment.double()
    first = output @ expand
    rest = output - first @ compress
    kept = compress @ moment @ compress.T
    fitted = first + rest @ moment @ compress.T @ torch.linalg.pinv(
        kept, hermitian=True, rtol=_FLOOR
    )
    left = output - fitted @ compress
    return fitted, float(((left @ moment) * left).sum())
