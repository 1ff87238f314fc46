"""A single attention layer in which a query attends to points: the model of the lower bounds."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from headwise.attention import HeadGeometry, mha
from headwise.attention.initialisation import FanIn
from headwise.checks import whole
from headwise.shapes import Float


@dataclass(frozen=True)
class CrossShape:
    """The sizes of a layer without MLP, norm and residual, as in the lower bounds.

    Args:
        width: The dimension of the points.
        heads: The number of heads.
        rank: The rank of the query-key forms.
        value_rank: The rank of the value maps.

    Raises:
        BadInputError: If a size is less than 1.

    Example:
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
            whole(name, getattr(self, name))

    def build(self, seed: int) -> CrossLayer:
        """Build the layer; its initial weights depend only on the seed."""
        return CrossLayer(self, seed)


class CrossLayer(nn.Module):
    """The layer Σ_h W_h X softmax(Xᵀ M_h y), with M_h and W_h of the ranks of its shape.

    Args:
        shape: The sizes.
        seed: The seed of the weights.

    Example:
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
        """Return the output for each query."""
        return self.attention(query.unsqueeze(1), key=points).squeeze(1)
