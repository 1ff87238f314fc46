"""Position rules: none, learned and added, learned and concatenated, rotary."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float


class PositionRule(nn.Module):
    """A rule that writes positions into tokens, or into queries and keys.

    A rule that writes into tokens does so once, where they enter a stack of layers. A rule that
    rotates queries and keys does so in every layer (``within_layers``).

    Example:
        >>> isinstance(Rotary(2), PositionRule)
        True
    """

    def embed(self, tokens: Float[Tensor, "b n w"]) -> Tensor:
        """Return the tokens with their positions."""
        return tokens

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys (b, H, ·, r) with their positions."""
        return queries, keys

    def within_layers(self) -> PositionRule:
        """The rule that remains for the layers once tokens are embedded."""
        return NoPosition()

    @property
    def added_width(self) -> int:
        """How much wider the tokens become."""
        return 0

    @property
    def turned_rank(self) -> int:
        """How many query-key dimensions depend on position."""
        return 0


class NoPosition(PositionRule):
    """No positions: tokens are a set.

    Example:
        >>> NoPosition().embed(torch.ones(1, 2, 3)).sum()
        tensor(6.)
    """


class LearnedAdditive(PositionRule):
    """Add a learned vector per position to the token; initially N(0, 0.02²).

    Args:
        length: The longest sequence.
        width: The width of the tokens.
        seed: The seed of the initial vectors.

    Example:
        >>> LearnedAdditive(length=5, width=3).embed(torch.zeros(1, 2, 3)).shape
        torch.Size([1, 2, 3])
    """

    def __init__(self, length: int, width: int, seed: int = 0) -> None:
        super().__init__()
        self.table = _table(length, width, 0.02, seed)

    def embed(self, tokens: Float[Tensor, "b n w"]) -> Tensor:
        """Add to each token the vector of its position."""
        if tokens.shape[-1] != self.table.shape[1]:
            raise BadInputError(
                f"expected tokens of width {self.table.shape[1]}, got {tokens.shape[-1]}",
                hint=f"make LearnedAdditive(length, width={tokens.shape[-1]})",
            )
        return tokens + _rows(self.table, tokens.shape[1])


class LearnedConcatenated(PositionRule):
    """Append a learned vector per position to the token; initially N(0, spread²).

    Args:
        length: The longest sequence.
        extra: The width of the appended vector.
        spread: The standard deviation of the initial vectors.
        seed: The seed of the initial vectors.

    Example:
        >>> LearnedConcatenated(length=5, extra=4).embed(torch.zeros(1, 2, 3)).shape
        torch.Size([1, 2, 7])
    """

    def __init__(self, length: int, extra: int, seed: int = 0, spread: float = 1.0) -> None:
        super().__init__()
        self.table = _table(length, extra, spread, seed)

    def embed(self, tokens: Float[Tensor, "b n w"]) -> Tensor:
        """Append to each token the vector of its position."""
        rows = _rows(self.table, tokens.shape[1]).expand(tokens.shape[0], -1, -1)
        return torch.cat([tokens, rows], dim=-1)

    @property
    def added_width(self) -> int:
        """The width of the appended vector."""
        return self.table.shape[1]


class Rotary(PositionRule):
    """Rotate the last ``rank`` dimensions of q and k in pairs by position · base^(−2i/r).

    There is no table, so there is no longest sequence.

    Args:
        rank: The number of dimensions that rotate, even.
        base: The base of the angles.
        pairs: Which dimensions rotate together: "halves" for i and i + r/2 (Llama), "adjacent" for
            2i and 2i + 1 (DeepSeek).

    Raises:
        BadInputError: If the rank is odd or less than 2.

    Example:
        >>> q, _ = Rotary(2).turn(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
        >>> q[0, 0, 0]
        tensor([1., 1.])
    """

    def __init__(
        self,
        rank: int,
        base: float = 10000.0,
        pairs: Literal["halves", "adjacent"] = "halves",
    ) -> None:
        super().__init__()
        if rank < 2 or rank % 2:
            raise BadInputError(
                f"expected an even rank for rotary positions, got {rank}",
                hint=f"pass an even rank, for example {max(2, rank - rank % 2)}",
            )
        self.rank, self.base, self.pairs = rank, base, pairs

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys by their positions, counted from zero."""
        if queries.shape[-1] < self.rank:
            raise BadInputError(
                f"heads of rank {queries.shape[-1]} have no {self.rank} dimensions to turn",
                hint=f"pass Rotary({queries.shape[-1] - queries.shape[-1] % 2})",
            )
        return self._turned(queries), self._turned(keys)

    def within_layers(self) -> PositionRule:
        """This rule itself: every layer rotates its queries and keys."""
        return self

    @property
    def turned_rank(self) -> int:
        """The number of dimensions that rotate."""
        return self.rank

    def _turned(self, x: Tensor) -> Tensor:
        still, moving = x.split([x.shape[-1] - self.rank, self.rank], dim=-1)
        cosine, sine = self._angles(x.shape[-2], x)
        if self.pairs == "halves":
            first, second = moving.chunk(2, dim=-1)
        else:
            first, second = moving[..., 0::2], moving[..., 1::2]
        turned = (first * cosine - second * sine, second * cosine + first * sine)
        return torch.cat([still, self._rejoined(*turned)], dim=-1)

    def _rejoined(self, first: Tensor, second: Tensor) -> Tensor:
        if self.pairs == "halves":
            return torch.cat([first, second], dim=-1)
        return torch.stack([first, second], dim=-1).flatten(-2)

    def _angles(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        # float64 whatever the layer: at position 10^6 a float32 angle is off by 0.03.
        wide = {"dtype": torch.float64, "device": like.device}
        powers = torch.arange(0, self.rank, 2, **wide) / self.rank
        angle = torch.arange(length, **wide).unsqueeze(-1) * self.base**-powers
        return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _table(length: int, width: int, spread: float, seed: int) -> nn.Parameter:
    drawn = torch.randn(length, width, generator=stream(seed, "positions"))
    return nn.Parameter(spread * drawn)


def _rows(table: Tensor, length: int) -> Tensor:
    if length > table.shape[0]:
        raise BadInputError(
            f"a sequence of {length} tokens is longer than the position table of {table.shape[0]}",
            hint=f"make the table with length={length}, or use Rotary, which has no table",
        )
    return table[:length]
