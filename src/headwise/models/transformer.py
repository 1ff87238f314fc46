"""An encoder stack: attention and MLP blocks, each with a norm and a residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from torch import Tensor, nn

from headwise.attention import (
    EVERYTHING,
    Attention,
    FanIn,
    HeadGeometry,
    Initialisation,
    MaskLike,
    NoPosition,
    PositionRule,
    fitting,
)
from headwise.attention.initialisation import empty_linear
from headwise.attention.projections import Biases
from headwise.checks import one_of, whole
from headwise.models.norms import NormName, make_norm
from headwise.shapes import Float

Placement = Literal["pre", "post"]


@dataclass(frozen=True)
class Style:
    """The parts of a block that seldom change.

    Args:
        placement: "pre" puts norms before each part, "post" after each sum.
        activation: "gelu" or "relu".
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights.
        attention: A function that builds a layer from geometry, biases and initialisation, such as
            a preset with some options filled in by ``functools.partial``.

    Raises:
        BadInputError: If ``placement`` is unknown.

    Example:
        >>> Style(placement="post").activation
        'gelu'
    """

    placement: Placement = "pre"
    activation: Literal["gelu", "relu"] = "gelu"
    biases: Biases = "all"
    initialisation: Initialisation = field(default_factory=FanIn)
    attention: Callable[..., Attention] = fitting

    def __post_init__(self) -> None:
        one_of("placement", self.placement, get_args(Placement))


class Mlp(nn.Module):
    """Linear, activation, linear."""

    def __init__(self, width: int, hidden: int, style: Style) -> None:
        super().__init__()
        biased = style.biases == "all"
        self.expand = empty_linear(width, hidden, biased)
        self.activation = nn.GELU() if style.activation == "gelu" else nn.ReLU()
        self.contract = empty_linear(hidden, width, biased)
        style.initialisation.fill_input(self.expand, "expand")
        style.initialisation.fill_output(self.contract, "contract")

    def forward(self, tokens: Tensor) -> Tensor:
        """Apply the MLP to each token."""
        return self.contract(self.activation(self.expand(tokens)))


class Block(nn.Module):
    """Attention, then the MLP; norms before each ("pre") or after each sum ("post")."""

    def __init__(self, attention: Attention, mlp: Mlp, norm: NormName, style: Style) -> None:
        super().__init__()
        width = attention.geometry.width
        self.attention, self.mlp = attention, mlp
        self.attention_norm, self.mlp_norm = make_norm(norm, width), make_norm(norm, width)
        self.placement = style.placement

    def forward(self, tokens: Tensor, mask: MaskLike = EVERYTHING) -> Tensor:
        """Apply attention and MLP."""
        if self.placement == "pre":
            tokens = tokens + self.attention(self.attention_norm(tokens), mask=mask)
            return tokens + self.mlp(self.mlp_norm(tokens))
        tokens = self.attention_norm(tokens + self.attention(tokens, mask=mask))
        return self.mlp_norm(tokens + self.mlp(tokens))


class EncoderStack(nn.Module):
    """A stack of blocks; positions come first, and a last norm if norms come before each part.

    Args:
        geometry: Width, heads and ranks of each layer.
        position: The position rule; none by default.
        depth: The number of blocks.
        mlp_width: The width of the MLP's hidden layer.
        norm: "layer", "rms" or "unit".
        style: Placement of norms, activation, biases and initialisation.

    Example:
        >>> stack = EncoderStack(HeadGeometry.standard(16, heads=4), depth=2, mlp_width=32)
        >>> stack(torch.zeros(1, 5, 16)).shape
        torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        geometry: HeadGeometry,
        position: PositionRule | None = None,
        *,
        depth: int,
        mlp_width: int,
        norm: NormName = "layer",
        style: Style | None = None,
    ) -> None:
        super().__init__()
        whole("depth", depth)
        whole("mlp_width", mlp_width)
        style = style or Style()
        self.geometry, self.position = geometry, position or NoPosition()
        self.blocks = nn.ModuleList(
            _block(geometry, self.position, mlp_width, norm, _styled(style, layer))
            for layer in range(depth)
        )
        pre = style.placement == "pre"
        self.last_norm = make_norm(norm, geometry.width) if pre else nn.Identity()

    @property
    def token_width(self) -> int:
        """The width of the tokens that come in: the width minus what positions add."""
        return self.geometry.width - self.position.added_width

    def forward(
        self, tokens: Float[Tensor, "b n w"], mask: MaskLike = EVERYTHING
    ) -> Float[Tensor, "b n d"]:
        """Apply all blocks in turn."""
        tokens = self.position.embed(tokens)
        for block in self.blocks:
            tokens = block(tokens, mask)
        return self.last_norm(tokens)


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters of a model by purpose.

    Args:
        model: A model made of headwise's layers.

    Returns:
        Numbers that sum to all parameters. "attention" counts the weights of the attention layers,
        as ``HeadGeometry.parameters`` does.

    Example:
        >>> stack = EncoderStack(HeadGeometry.standard(16, heads=4), depth=2, mlp_width=32)
        >>> parameter_counts(stack)["attention"] == 2 * stack.geometry.parameters
        True
    """
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = _part(name)
        counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


def _part(name: str) -> str:
    steps = name.split(".")
    if "projection" in steps:
        if steps[-2].endswith("norm"):
            return "attention norms"
        return "attention" if steps[-1] == "weight" else "attention biases"
    for part in ("mlp", "position", "phi"):
        if part in steps:
            return part
    return "norm" if any("norm" in step for step in steps) else steps[0]


def _styled(style: Style, layer: int) -> Style:
    return replace(style, initialisation=style.initialisation.child("layer", layer))


def _block(
    geometry: HeadGeometry, position: PositionRule, mlp_width: int, norm: NormName, style: Style
) -> Block:
    rule = position.within_layers()
    given = {} if isinstance(rule, NoPosition) else {"position": rule}
    attention = style.attention(geometry, style.biases, style.initialisation, **given)
    return Block(attention, Mlp(geometry.width, mlp_width, style), norm, style)
