"""One attention layer and nothing else: a query looks at points, for the theory's task."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from headwise.attention import HeadGeometry, mha
from headwise.attention.initialisation import FanIn
from headwise.errors import BadInputError
from headwise.shapes import Float


@dataclass(frozen=True)
class CrossShape:
    """Sizes of a layer that has no MLP, no norm and no residual: what lower bounds speak of.

    >>> CrossShape(width=8, heads=4, rank=1, value_rank=8).build(0)(
    ...     torch.zeros(5, 2, 8), torch.zeros(5, 8)
    ... ).shape
    torch.Size([5, 8])
    """

    width: int
    heads: int
    rank: int
    value_rank: int

    def __post_init__(self) -> None:
        for name in ("width", "heads", "rank", "value_rank"):
            if getattr(self, name) < 1:
                raise BadInputError(f"{name} is {getattr(self, name)}", hint="pass 1 or more")

    def build(self, seed: int) -> CrossLayer:
        """The layer as it begins, drawn from the seed alone."""
        return CrossLayer(self, seed)


class CrossLayer(nn.Module):
    """Σ_h W_h X softmax(Xᵀ M_h y), with M_h and W_h of the ranks of its shape.

    >>> layer = CrossLayer(CrossShape(width=8, heads=4, rank=1, value_rank=1), seed=0)
    >>> layer(torch.zeros(5, 2, 8), torch.zeros(5, 8)).shape
    torch.Size([5, 8])
    """

    def __init__(self, shape: CrossShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        ranks = (shape.rank, shape.value_rank)
        geometry = HeadGeometry(shape.width, shape.heads, shape.heads, *ranks)
        self.attention = mha(geometry, initialisation=FanIn(seed))

    def forward(
        self, points: Float[Tensor, "b n d"], query: Float[Tensor, "b d"]
    ) -> Float[Tensor, "b d"]:
        """The answer to each query."""
        return self.attention(query.unsqueeze(1), key=points).squeeze(1)
