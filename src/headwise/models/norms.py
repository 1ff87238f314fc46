"""Three norms a block may use, by name."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from headwise.checks import one_of

NormName = Literal["layer", "rms", "unit"]


class UnitNorm(nn.Module):
    """Scale each token to the unit sphere, times one learned scalar that starts at 1.

    Example:
        >>> UnitNorm()(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]], grad_fn=<MulBackward0>)
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return x / ‖x‖ times the scalar; zero stays zero."""
        return self.scale * nn.functional.normalize(tokens, dim=-1)


def make_norm(name: NormName, width: int) -> nn.Module:
    """Make a LayerNorm, RMSNorm or UnitNorm of this width."""
    one_of("norm", name, get_args(NormName))
    if name == "layer":
        return nn.LayerNorm(width)
    return nn.RMSNorm(width, eps=1e-6) if name == "rms" else UnitNorm()
