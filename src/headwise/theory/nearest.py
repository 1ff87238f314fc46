"""Layers that try to beat the lower bound: random low-rank heads with least-squares values."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.shapes import Float
from headwise.spectra import Estimate
from headwise.theory.harmonics import Values
from headwise.theory.sizes import Whole, whole


def random_heads_error(
    width: Whole, rank: Whole, heads: Whole, values: Values = Values.ANY, seed: int = 0
) -> Estimate:
    """The error of random rank-r hardmax heads on the nearer of two neighbours.

    Query-key forms KᵀK with random r×d matrices K, values by least squares.

    >>> random_heads_error(4, 1, 8).mean < 0.5
    True
    """
    d, r, h = whole("the width", width, 2), whole("the rank", rank), whole("heads", heads)
    forms = torch.randn(h, r, d, generator=stream(seed, "forms", d, r), dtype=torch.float64)
    return heads_error(forms, values, seed)


def heads_error(forms: Float[Tensor, "heads r d"], values: Values, seed: int = 0) -> Estimate:
    """The mean squared error of hardmax heads with query-key forms KᵀK on nearest neighbours.

    Value matrices are fitted by least squares to one sample and the error is measured on
    another, so it is the error of a layer that exists. One full-rank head is exact:

    >>> heads_error(torch.eye(4).double().unsqueeze(0), Values.IDENTITY).mean < 1e-20
    True
    """
    h, _, d = forms.shape
    generator = stream(seed, "nearest", d, values.value)
    samples = max(4000, 20 * h * (d if values is Values.ANY else 1))
    seen, target = _answers(forms, *neighbours(d, samples, generator))
    fitted = _fitted_values(seen, target, values)
    seen, target = _answers(forms, *neighbours(d, samples, generator))
    return Estimate.of((_combined(seen, fitted) - target).square().sum(-1))


def neighbours(
    width: int, samples: int, generator: torch.Generator
) -> tuple[Float[Tensor, "samples 2 d"], Float[Tensor, "samples d"]]:
    """Uniform orthonormal pairs (x₁, x₂) and uniform unit y.

    >>> pairs, y = neighbours(3, 5, torch.Generator().manual_seed(0))
    >>> torch.allclose((pairs @ pairs.mT), torch.eye(2).double().expand(5, 2, 2))
    True
    """
    first = torch.randn(samples, 2, width, generator=generator, dtype=torch.float64)
    pairs = torch.linalg.qr(first.mT)[0].mT
    # QR fixes signs by its own rule; random signs restore the uniform law.
    signs = torch.randint(0, 2, (samples, 2, 1), generator=generator) * 2 - 1
    y = torch.randn(samples, width, generator=generator, dtype=torch.float64)
    return pairs * signs, torch.nn.functional.normalize(y, dim=-1)


def _answers(forms: Tensor, pairs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What each head attends to, (samples, heads, d), and the nearer neighbour."""
    keys = torch.einsum("hrd,sid->shir", forms, pairs)
    queries = torch.einsum("hrd,sd->shr", forms, y)
    picked = torch.einsum("shir,shr->shi", keys, queries).argmax(-1)
    nearer = torch.einsum("sid,sd->si", pairs, y).argmax(-1)
    rows = torch.arange(len(pairs))
    return pairs[rows.unsqueeze(-1), picked], pairs[rows, nearer]


def _fitted_values(seen: Tensor, target: Tensor, values: Values) -> Tensor:
    """Least-squares value matrices, (heads·d, d), or multiples of the identity, (heads,)."""
    if values is Values.ANY:
        return torch.linalg.lstsq(seen.flatten(1), target, driver="gelsd").solution
    design = seen.transpose(1, 2).flatten(0, 1)
    return torch.linalg.lstsq(design, target.reshape(-1, 1), driver="gelsd").solution[:, 0]


def _combined(seen: Tensor, fitted: Tensor) -> Tensor:
    if fitted.ndim == 2:
        return seen.flatten(1) @ fitted
    return torch.einsum("shd,h->sd", seen, fitted)
