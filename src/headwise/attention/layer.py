"""ONE attention layer = projection (with its geometry) + position rule + weighting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from headwise.attention.geometry import HeadGeometry
from headwise.attention.mask_arguments import MaskLike, as_mask
from headwise.attention.masks import EVERYTHING
from headwise.attention.positions import NoPosition, PositionRule
from headwise.attention.projections import Projection
from headwise.attention.scores import checked_temperature
from headwise.attention.view import AttentionView
from headwise.attention.weighting import Heads, Softmax, Weighting
from headwise.errors import BadInputError
from headwise.shapes import Float


@dataclass(frozen=True)
class HeadSum:
    """The output is the sum over heads.

    >>> HeadSum().factor(heads=8)
    1.0
    """

    def factor(self, heads: int) -> float:
        """What the sum over heads is multiplied by."""
        return 1.0


@dataclass(frozen=True)
class HeadMean:
    """The output is the mean over ``copies`` equal groups of heads, each summed.

    This is how the heads paper widens a layer: 64 copies of a layer, averaged, are one layer
    with 64 times the heads and ``HeadMean(64)``.

    >>> HeadMean(copies=4).factor(heads=8)
    0.25
    """

    copies: int

    def factor(self, heads: int) -> float:
        """What the sum over heads is multiplied by."""
        if self.copies < 1 or heads % self.copies:
            raise BadInputError(
                f"{heads} heads do not fall into {self.copies} equal copies",
                hint=f"pass a divisor of {heads}",
            )
        return 1 / self.copies


class Attention(nn.Module):
    """Σ_h W_O,h W_V,h X · weights(q_h, k_h): any width, heads, ranks, positions, weighting.

    The temperature divides the logits and is √qk_rank unless given. Tokens are (batch,
    sequence, width); with a context it is cross-attention.

    >>> from headwise.attention import FullProjection
    >>> layer = Attention(FullProjection(HeadGeometry.free(64, heads=100, rank=3)))
    >>> layer(torch.zeros(2, 5, 64)).shape
    torch.Size([2, 5, 64])
    """

    def __init__(
        self,
        projection: Projection,
        *,
        position: PositionRule | None = None,
        weighting: Weighting | None = None,
        temperature: float | None = None,
        combination: HeadSum | HeadMean | None = None,
    ) -> None:
        super().__init__()
        self.projection = projection
        self.position = position or NoPosition()
        self.weighting = weighting or Softmax()
        self.temperature = checked_temperature(temperature, projection.geometry.qk_rank)
        self.combination = combination or HeadSum()
        self.factor = self.combination.factor(projection.geometry.heads)
        self.observer: Callable[[AttentionView], None] | None = None

    @property
    def geometry(self) -> HeadGeometry:
        """Width, heads and ranks."""
        return self.projection.geometry

    def forward(
        self, tokens: Tensor, context: Tensor | None = None, mask: MaskLike = EVERYTHING
    ) -> Float[Tensor, "b n d"]:
        """Attend from the tokens to the context (to the tokens themselves if there is none)."""
        heads = self.heads(tokens, context, mask)
        if self.observer is not None:
            self.observer(self._view(heads))
        return self.projection.combine(self.weighting.mix(heads), self.factor)

    def matrix(
        self, tokens: Tensor, context: Tensor | None = None, mask: MaskLike = EVERYTHING
    ) -> Float[Tensor, "b h n m"]:
        """The attention matrices themselves, in the layer's dtype.

        >>> from headwise.attention import mha
        >>> mha(HeadGeometry.standard(8, heads=2)).matrix(torch.zeros(1, 4, 8)).shape
        torch.Size([1, 2, 4, 4])
        """
        return self.weighting.weights(self.heads(tokens, context, mask))

    def view(
        self, tokens: Tensor, context: Tensor | None = None, mask: MaskLike = EVERYTHING
    ) -> AttentionView:
        """What the layer makes of these tokens: queries, keys, mask, temperature, weights.

        >>> from headwise.attention import mha
        >>> mha(HeadGeometry.standard(8, heads=2)).view(torch.zeros(1, 4, 8)).queries.shape
        torch.Size([1, 2, 4, 4])
        """
        return self._view(self.heads(tokens, context, mask))

    def heads(
        self, tokens: Tensor, context: Tensor | None = None, mask: MaskLike = EVERYTHING
    ) -> Heads:
        """Queries, keys and values of every head, with positions."""
        tokens = self._embedded("tokens", tokens)
        context = tokens if context is None else self._embedded("context", context)
        queries, keys, values = self.projection(tokens, context)
        queries, keys = self.position.turn(queries, keys)
        return Heads(queries, keys, values, as_mask(mask), self.temperature)

    def _embedded(self, name: str, tokens: Tensor) -> Tensor:
        if tokens.ndim != 3:
            raise BadInputError(
                f"the {name} have shape {tuple(tokens.shape)}",
                hint="pass (batch, sequence, width)",
            )
        tokens = self.position.embed(tokens)
        if tokens.shape[-1] != self.geometry.width:
            raise BadInputError(
                f"the {name} are {tokens.shape[-1]} wide, the layer {self.geometry.width}",
                hint=f"pass (batch, sequence, {self.geometry.width - self.position.added_width})",
            )
        return tokens

    def _view(self, heads: Heads) -> AttentionView:
        return AttentionView(
            queries=heads.queries,
            keys=heads.keys,
            mask=heads.mask,
            temperature=heads.temperature,
            weights=self.projection.head_weights(),
            turned_rank=self.position.turned_rank,
        )
