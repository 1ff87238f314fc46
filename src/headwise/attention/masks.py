"""Masks: which keys each query may attend to. Combine them with ``&``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.attention.grid import FARTHEST, Grid
from headwise.checks import whole
from headwise.errors import BadInputError, ParameterError


class Mask(ABC):
    """A rule that sets logits to minus infinity where attending is not allowed.

    ``name`` is the text that ``as_mask`` reads back, or a word in brackets for a mask that is
    given by a tensor: "[padding]", "[boolean]", "[bias]".

    Example:
        >>> (Causal() & SlidingWindow(128)).name
        'causal+window:128'
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """How the mask is named, for example "causal+window:128"."""

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """Return the logits of this block with the mask applied."""
        return logits.masked_fill(~self.allowed(grid), -math.inf)

    @abstractmethod
    def allowed(self, grid: Grid) -> Tensor:
        """Return True where the row may attend to the column; broadcasts to the block."""

    @property
    def has_tensor(self) -> bool:
        """Whether a tensor is part of the mask; rules by position leave every query a key."""
        return False

    def of_head(self, grid: Grid, sequence: int, head: int) -> Mask:
        """Return the mask for the logits of one head on one sequence."""
        return self

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return the mask for these queries and keys of one sequence, none of them padding."""
        return Allowed(grid.of_tokens(self.allowed(grid), sequence, rows, columns))

    def __and__(self, other: Mask) -> Mask:
        """Apply both masks."""
        return self if isinstance(other, Everything) else Both(self, other)


@dataclass(frozen=True)
class Everything(Mask):
    """No mask: every query attends to every key.

    Example:
        >>> Everything().name
        'none'
    """

    @property
    def name(self) -> str:
        """Return "none"."""
        return "none"

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """Return the logits unchanged."""
        return logits

    def allowed(self, grid: Grid) -> Tensor:
        """Return True everywhere."""
        return torch.ones(1, 1, dtype=torch.bool, device=grid.device)

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return no mask."""
        return self

    def __and__(self, other: Mask) -> Mask:
        """Return the other mask."""
        return other


EVERYTHING = Everything()


@dataclass(frozen=True)
class Both(Mask):
    """Two masks at once, written ``first & second``."""

    first: Mask
    second: Mask

    @property
    def name(self) -> str:
        """The two names joined by +."""
        return f"{self.first.name}+{self.second.name}"

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """Apply one mask, then the other."""
        return self.second.apply(self.first.apply(logits, grid), grid)

    def allowed(self, grid: Grid) -> Tensor:
        """Return True where both masks allow."""
        return self.first.allowed(grid) & self.second.allowed(grid)

    @property
    def has_tensor(self) -> bool:
        """Whether one of them has."""
        return self.first.has_tensor or self.second.has_tensor

    def of_head(self, grid: Grid, sequence: int, head: int) -> Mask:
        """Return both masks for one head."""
        return self.first.of_head(grid, sequence, head) & self.second.of_head(grid, sequence, head)

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return both masks for these tokens."""
        asked = (grid, sequence, rows, columns)
        return self.first.of_tokens(*asked) & self.second.of_tokens(*asked)


class _ByDistance(Mask):
    """A rule that depends on the distance between query and key alone."""

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return the same rule if the tokens stand side by side."""
        places = columns.nonzero().flatten()
        gaps = len(places) > 0 and int(places[-1] - places[0]) + 1 != len(places)
        if rows is columns and not gaps:
            return self
        return super().of_tokens(grid, sequence, rows, columns)


@dataclass(frozen=True)
class Causal(_ByDistance):
    """Query i attends to keys 0 … i + offset.

    Args:
        offset: Number of keys before the first query. With n queries and m keys of which the
            last n belong to the queries (a KV cache), it is m − n.

    Example:
        >>> Causal().allowed(Grid.whole(torch.Size([2, 2]), torch.device("cpu"))).int()
        tensor([[1, 0],
                [1, 1]], dtype=torch.int32)
    """

    offset: int = 0

    def __post_init__(self) -> None:
        whole("`offset`", self.offset, -FARTHEST, FARTHEST)

    @property
    def name(self) -> str:
        """Return "causal", with the offset if there is one."""
        return f"causal:{self.offset}" if self.offset else "causal"

    def allowed(self, grid: Grid) -> Tensor:
        """Return True on and below the diagonal."""
        return grid.column_index <= grid.row_index + self.offset


@dataclass(frozen=True)
class SlidingWindow(_ByDistance):
    """Query i attends to keys less than ``width`` positions away, on both sides.

    Args:
        width: Number of positions, at least 1.

    Raises:
        ParameterError: The width is less than 1, or more than 10⁹.

    Example:
        >>> SlidingWindow(1).allowed(Grid.whole(torch.Size([2, 2]), torch.device("cpu"))).int()
        tensor([[1, 0],
                [0, 1]], dtype=torch.int32)
    """

    width: int

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ParameterError(
                f"expected a sliding window of width at least 1, got {self.width}",
                hint="pass a larger width",
            )
        whole("`width`", self.width, 1, FARTHEST)

    @property
    def name(self) -> str:
        """Return "window:" and the width."""
        return f"window:{self.width}"

    def allowed(self, grid: Grid) -> Tensor:
        """Return True in a band around the diagonal."""
        return (grid.column_index - grid.row_index).abs() < self.width


class _Given(Mask):
    """A mask given by a tensor."""

    @property
    def has_tensor(self) -> bool:
        """Return True."""
        return True

    def of_head(self, grid: Grid, sequence: int, head: int) -> Mask:
        """Return the part of one head."""
        return Allowed(grid.of_head(self.allowed(grid), sequence, head))


@dataclass(frozen=True, eq=False)
class Padding(_Given):
    """No query attends to padded keys.

    Args:
        real: Booleans of shape (batch, keys), True where a token is real. The batch dimensions
            are the leading ones of the logits, so (batch, keys) fits logits of shape
            (batch, heads, queries, keys).

    Raises:
        BadInputError: ``real`` is not boolean.

    Example:
        >>> Padding.of_lengths(torch.tensor([1, 3]), size=3).real.int()
        tensor([[1, 0, 0],
                [1, 1, 1]], dtype=torch.int32)
    """

    real: Tensor

    @property
    def name(self) -> str:
        """Return "[padding]"."""
        return "[padding]"

    def __post_init__(self) -> None:
        if self.real.dtype != torch.bool:
            raise BadInputError(
                "expected a boolean padding mask, got dtype "
                + str(self.real.dtype).removeprefix("torch."),
                hint="pass True where a token is real",
            )

    @classmethod
    def of_lengths(cls, lengths: Tensor, size: int) -> Padding:
        """Return the mask of sequences of these lengths, padded at the end to ``size``."""
        return cls(torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1))

    def allowed(self, grid: Grid) -> Tensor:
        """Return True in the columns of real tokens."""
        batch = self.real.shape[:-1]
        if (*batch, self.real.shape[-1]) != (*grid.shape[: len(batch)], grid.shape[-1]):
            raise BadInputError(
                f"expected a padding mask of shape (batch, keys) for logits of shape "
                f"{tuple(grid.shape)}, got {tuple(self.real.shape)}",
                hint="the batch dimensions are the leading ones of the logits",
            )
        between = (1,) * (len(grid.shape) - 1 - len(batch))
        return self.real[..., grid.columns].reshape(*batch, *between, -1)

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return no mask: none of these tokens is padding."""
        return EVERYTHING


@dataclass(frozen=True, eq=False)
class Allowed(_Given):
    """A boolean mask, True where attending is allowed.

    Args:
        where: Booleans that broadcast to the shape of the logits, (..., queries, keys).

    Example:
        >>> Allowed(torch.tensor([[True, False]])).allowed(
        ...     Grid.whole(torch.Size([3, 2]), torch.device("cpu"))
        ... )
        tensor([[ True, False]])
    """

    where: Tensor

    @property
    def name(self) -> str:
        """Return "[boolean]"."""
        return "[boolean]"

    def allowed(self, grid: Grid) -> Tensor:
        """Return the part of the mask in this block."""
        return grid.cut(self.where)


@dataclass(frozen=True, eq=False)
class Additive(_Given):
    """A bias that is added to the logits after the temperature; −∞ forbids.

    The most negative finite number of the bias's dtype, which many models write for −∞, counts
    as −∞. Other numbers are taken as exact, whatever their dtype.

    Args:
        bias: Floats that broadcast to the shape of the logits, (..., queries, keys).

    Raises:
        BadInputError: The bias contains NaN or +∞.

    Example:
        >>> bias = torch.tensor([[0.0, -torch.inf]])
        >>> Additive(bias).apply(torch.zeros(1, 2), Grid.whole(torch.Size([1, 2]), bias.device))
        tensor([[0., -inf]])
    """

    bias: Tensor

    @property
    def name(self) -> str:
        """Return "[bias]"."""
        return "[bias]"

    def __post_init__(self) -> None:
        if bool((self.bias.isnan() | (self.bias == math.inf)).any()):
            raise BadInputError(
                "expected a finite bias or -infinity, got NaN or +infinity",
                hint="write -infinity where attending is not allowed",
            )

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """Add the bias to the logits."""
        bias = grid.cut(self.bias)
        forbidden = bias <= torch.finfo(bias.dtype).min
        return (logits + bias.to(logits.dtype)).masked_fill(forbidden, -math.inf)

    def allowed(self, grid: Grid) -> Tensor:
        """Return True where the bias is finite."""
        return grid.cut(self.bias) > torch.finfo(self.bias.dtype).min

    def of_head(self, grid: Grid, sequence: int, head: int) -> Mask:
        """Return the bias of one head."""
        return Additive(grid.of_head(self.bias, sequence, head))

    def of_tokens(self, grid: Grid, sequence: int, rows: Tensor, columns: Tensor) -> Mask:
        """Return the bias of these tokens."""
        return Additive(grid.of_tokens(self.bias, sequence, rows, columns))
