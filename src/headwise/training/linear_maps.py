"""Linear maps of all members at once, with a weight gradient that keeps a GPU busy.

The gradient of a weight is a product of two small matrices over thousands of rows. A GPU gives each
tile of the result to one processor, which goes through all rows while the others idle. Cut into
pieces along the rows that are then summed, it takes a tenth of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, normalize

#: The number of tiles that keeps a large GPU busy, and the side of a tile.
BUSY, TILE = 256, 64

#: The least rows per piece: below this, summing the pieces costs more than it saves.
FEWEST_ROWS = 64


class Maps:
    """The parameters of all members under a prefix, and the maps they make of rows (M, k, d)."""

    def __init__(self, parameters: Mapping[str, Tensor], prefix: str = "") -> None:
        self.parameters, self.prefix = parameters, prefix

    def __getitem__(self, name: str) -> Tensor:
        return self.parameters[self.prefix + name]

    def below(self, name: str) -> Maps:
        """Return the parameters of a part."""
        return Maps(self.parameters, f"{self.prefix}{name}.")

    def own(self) -> dict[str, Tensor]:
        """Return only the parameters of this part, by their names within it."""
        cut = len(self.prefix)
        known = self.parameters.items()
        return {name[cut:]: value for name, value in known if name.startswith(self.prefix)}

    def linear(self, name: str, rows: Tensor, factor: float = 1.0) -> Tensor:
        """Return rows times their member's transposed weight, times the factor, plus the bias."""
        return linear_map(rows, self[f"{name}.weight"], self[f"{name}.bias"], factor)

    def norm(self, name: str, rows: Tensor) -> Tensor:
        """Apply a layer norm with weight and bias, or a unit norm with one scalar."""
        scale = self.parameters.get(f"{self.prefix}{name}.scale")
        if scale is not None:
            return scale[:, None, None] * normalize(rows, dim=-1)
        weight, bias = (self[f"{name}.{part}"].unsqueeze(1) for part in ("weight", "bias"))
        return torch.addcmul(bias, layer_norm(rows, rows.shape[-1:]), weight)


def linear_map(rows: Tensor, weight: Tensor, bias: Tensor, factor: float = 1.0) -> Tensor:
    """Return rows (M, k, d) times factor · weightᵀ (M, d, o), plus bias (M, o)."""
    rows, weight, bias = _as_rounded(rows, weight, bias)
    pieces = _pieces(rows, weight)
    if pieces == 1:
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.mT, alpha=factor)
    return _Cut.apply(rows, weight, bias, factor, pieces)  # pyright: ignore[reportReturnType]


def _as_rounded(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast as autocast would, which does not look into our own function."""
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(kind)) for tensor in tensors)


def _pieces(rows: Tensor, weight: Tensor) -> int:
    """Return how many pieces the rows are cut into; one on a CPU and for large maps."""
    if rows.device.type != "cuda":
        return 1
    members, outputs, inputs = weight.shape
    tiles = members * math.ceil(outputs / TILE) * math.ceil(inputs / TILE)
    wanted = min(BUSY // tiles, rows.shape[1] // FEWEST_ROWS)
    return next((p for p in range(wanted, 1, -1) if rows.shape[1] % p == 0), 1)


class _Cut(torch.autograd.Function):
    """The linear map, with the gradient of the weight computed piece by piece."""

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
    """Return givenᵀ · rows of every member (M, o, d), summed over pieces of the rows."""
    cut = [t.reshape(len(t) * pieces, -1, t.shape[-1]) for t in (given, rows)]
    return torch.bmm(cut[0].mT, cut[1]).unflatten(0, (len(rows), pieces)).sum(1)
