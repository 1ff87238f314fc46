"""Linear maps of all members at once, with a weight gradient that fills a GPU.

The gradient of a weight is a product of two small matrices over thousands of rows. A GPU gives each
tile of the result to one processor, which then walks through all rows alone while the others
idle; cut into pieces along the rows, and the pieces summed, it takes a tenth of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, normalize

#: Tiles that keep the processors of a large GPU busy, and the side of one.
BUSY, TILE = 256, 64

#: Pieces of fewer rows are not worth their sum.
FEWEST_ROWS = 64


class Maps:
    """The parameters of all members under a prefix, and the maps they make of rows (M, k, d).

    >>> parameters = {"mlp.weight": torch.ones(2, 3, 4), "mlp.bias": torch.zeros(2, 3)}
    >>> Maps(parameters).linear("mlp", torch.ones(2, 5, 4)).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, parameters: Mapping[str, Tensor], prefix: str = "") -> None:
        self.parameters, self.prefix = parameters, prefix

    def __getitem__(self, name: str) -> Tensor:
        return self.parameters[self.prefix + name]

    def below(self, name: str) -> Maps:
        """The parameters of a part."""
        return Maps(self.parameters, f"{self.prefix}{name}.")

    def own(self) -> dict[str, Tensor]:
        """The parameters of this part alone, by their names within it."""
        cut = len(self.prefix)
        known = self.parameters.items()
        return {name[cut:]: value for name, value in known if name.startswith(self.prefix)}

    def linear(self, name: str, rows: Tensor, factor: float = 1.0) -> Tensor:
        """Rows times the transposed weight of their member, times the factor, plus the bias."""
        return linear_map(rows, self[f"{name}.weight"], self[f"{name}.bias"], factor)

    def norm(self, name: str, rows: Tensor) -> Tensor:
        """A layer norm with weight and bias, or a unit norm with one scalar."""
        scale = self.parameters.get(f"{self.prefix}{name}.scale")
        if scale is not None:
            return scale[:, None, None] * normalize(rows, dim=-1)
        weight, bias = (self[f"{name}.{part}"].unsqueeze(1) for part in ("weight", "bias"))
        return torch.addcmul(bias, layer_norm(rows, rows.shape[-1:]), weight)


def linear_map(rows: Tensor, weight: Tensor, bias: Tensor, factor: float = 1.0) -> Tensor:
    """Rows (M, k, d) times factor · weightᵀ (M, d, o), plus bias (M, o).

    >>> linear_map(torch.ones(1, 2, 3), torch.ones(1, 1, 3), torch.ones(1, 1)).flatten()
    tensor([4., 4.])
    """
    rows, weight, bias = _as_rounded(rows, weight, bias)
    pieces = _pieces(rows, weight)
    if pieces == 1:
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.mT, alpha=factor)
    return _Cut.apply(rows, weight, bias, factor, pieces)  # pyright: ignore[reportReturnType]


def _as_rounded(*tensors: Tensor) -> tuple[Tensor, ...]:
    """What autocast would make of these, since it does not look into a function of our own."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(kind)) for tensor in tensors)


def _pieces(rows: Tensor, weight: Tensor) -> int:
    """How many pieces the rows are cut into; one where a CPU or large maps need no cutting."""
    if rows.device.type != "cuda":
        return 1
    members, outputs, inputs = weight.shape
    tiles = members * math.ceil(outputs / TILE) * math.ceil(inputs / TILE)
    wanted = min(BUSY // tiles, rows.shape[1] // FEWEST_ROWS)
    return next((p for p in range(wanted, 1, -1) if rows.shape[1] % p == 0), 1)


class _Cut(torch.autograd.Function):
    """The map as it is, with the gradient of the weight taken piece by piece."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, factor: float, pieces: int
    ) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.factor, ctx.pieces = factor, pieces
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.mT, alpha=factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        given = gradients[0]
        to_bias = given.sum(1)
        if ctx.factor != 1.0:
            given = given * ctx.factor
        to_rows = torch.bmm(given, weight) if ctx.needs_input_grad[0] else None
        return to_rows, weight_gradient(given, rows, ctx.pieces), to_bias, None, None


def weight_gradient(given: Tensor, rows: Tensor, pieces: int) -> Tensor:
    """givenᵀ · rows of every member (M, o, d), summed over pieces of the rows.

    >>> one = torch.arange(8.0).view(1, 4, 2)
    >>> torch.equal(weight_gradient(one, one, 2), one.mT @ one)
    True
    """
    cut = [t.reshape(len(t) * pieces, -1, t.shape[-1]) for t in (given, rows)]
    return torch.bmm(cut[0].mT, cut[1]).unflatten(0, (len(rows), pieces)).sum(1)
