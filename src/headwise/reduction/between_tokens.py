"""Maps of a lower rank that count the terms between the tokens of a sequence.

Replace every vector x_j of a sequence by P x_j. The scalar whose gradients are γ_j then changes by

    Σ_j γ_jᵀ(P − I) x_j = ⟨P − I, M⟩,  M = Σ_j γ_j x_jᵀ,

to first order, so the loss E ⟨P − I, M⟩² needs one small matrix for each sequence and head. It has
no closed form. ``best_factors`` leaves out the products of different tokens; here they count, and
L-BFGS finds P. With few sequences the form E M ⊗ M is noisy, so half of the loss is the product
of its marginals, E MMᵀ ⊗ E MᵀM / E‖M‖². The start is the best P for that product alone, which has a
closed form.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Float

#: The weight of the product beside the form itself. Cross-validation on calibration sequences of
#: MiniLM gave 0.3 to 0.7.
PRODUCT = 0.5

#: Steps of L-BFGS; more lower the loss by a few per cent.
STEPS = 25

#: Directions whose share of the largest variance is below this count as much as it.
_FLOOR = 1e-6


def maps_between_tokens(
    samples: Float[Tensor, "s h d d"], rank: int
) -> tuple[Float[Tensor, "h r d"], Float[Tensor, "h d r"]]:
    """Return the maps of every head that lose least, with terms between tokens.

    Args:
        samples: M of each sequence and head: gradients times states.
        rank: The rank to keep.

    Returns:
        compress and expand in float64; the columns of expand are orthonormal.
    """
    m = samples.double().transpose(0, 1)
    root, inverse = _roots((m @ m.mT).mean(1))
    columns = (m.mT @ m).mean(1)
    size = columns.diagonal(dim1=1, dim2=2).sum(1).clamp_min(torch.finfo(torch.float64).tiny)
    other, other_inverse = _roots(columns / size[:, None, None])
    # With X = A P B the product is ‖X − A B‖², whose best X of a rank is a part of the SVD.
    target = root @ other
    white = inverse.unsqueeze(1) @ m @ other_inverse.unsqueeze(1)
    left, right = _least(white.float(), target.float(), rank)
    basis, triangle = torch.linalg.qr(inverse @ left.double())
    return triangle @ right.double() @ other_inverse, basis


@torch.enable_grad()
def _least(samples: Tensor, target: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Minimise E ⟨L R − target, M⟩² and the product over both factors, all heads at once."""
    u, sizes, v = torch.linalg.svd(target)
    half = sizes[:, :rank].sqrt()
    factors = [(u[:, :, :rank] * half.unsqueeze(1)), (v[:, :rank] * half.unsqueeze(2))]
    left, right = (each.contiguous().requires_grad_() for each in factors)
    flat, count = samples.flatten(2), samples.shape[1]
    whole = float(target.square().sum()) or 1.0
    descent = torch.optim.LBFGS(
        [left, right], max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        descent.zero_grad()
        change = left @ right - target
        form = (flat @ change.flatten(1).unsqueeze(2)).square().sum() / count
        found = ((1 - PRODUCT) * form + PRODUCT * change.square().sum()) / whole
        found.backward()
        return found

    descent.step(loss)
    return left.detach(), right.detach()


def _roots(moment: Tensor) -> tuple[Tensor, Tensor]:
    """Return the symmetric square root of each matrix and its inverse."""
    sizes, directions = torch.linalg.eigh(moment)
    least = (_FLOOR * sizes[:, -1:]).clamp_min(torch.finfo(torch.float64).tiny)
    root = sizes.maximum(least).sqrt().unsqueeze(1)
    return (directions * root) @ directions.mT, (directions / root) @ directions.mT
