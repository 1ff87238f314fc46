"""Masks: which keys each query may attend to. Combine them with ``&``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import BadInputError, ParameterError


@dataclass(frozen=True)
class Grid:
    """A block of rows and columns of a batch of matrices of the whole ``shape``."""

    shape: torch.Size
    device: torch.device
    rows: slice
    columns: slice

    @classmethod
    def whole(cls, shape: torch.Size, device: torch.device) -> Grid:
        """Return the grid of all rows and columns."""
        return cls(shape, device, slice(0, shape[-2]), slice(0, shape[-1]))

    def block(self, rows: slice, columns: slice) -> Grid:
        """Return these rows and columns, counted in the whole matrix."""
        return Grid(self.shape, self.device, rows, columns)

    @property
    def row_index(self) -> Tensor:
        """The row numbers as a column vector."""
        return torch.arange(self.rows.start, self.rows.stop, device=self.device).unsqueeze(-1)

    @property
    def column_index(self) -> Tensor:
        """The column numbers as a row vector."""
        return torch.arange(self.columns.start, self.columns.stop, device=self.device)

    def cut(self, given: Tensor) -> Tensor:
        """Return this block of a tensor that broadcasts to the whole shape."""
        rows = slice(None) if given.shape[-2] == 1 else self.rows
        columns = slice(None) if given.shape[-1] == 1 else self.columns
        return given[..., rows, columns]


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


@dataclass(frozen=True)
class Causal(Mask):
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

    @property
    def name(self) -> str:
        """Return "causal", with the offset if there is one."""
        return f"causal:{self.offset}" if self.offset else "causal"

    def allowed(self, grid: Grid) -> Tensor:
        """Return True on and below the diagonal."""
        return grid.column_index <= grid.row_index + self.offset


@dataclass(frozen=True)
class SlidingWindow(Mask):
    """Query i attends to keys less than ``width`` positions away, on both sides.

    Args:
        width: Number of positions, at least 1.

    Raises:
        BadInputError: The width is less than 1.

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

    @property
    def name(self) -> str:
        """Return "window:" and the width."""
        return f"window:{self.width}"

    def allowed(self, grid: Grid) -> Tensor:
        """Return True in a band around the diagonal."""
        return (grid.column_index - grid.row_index).abs() < self.width


@dataclass(frozen=True, eq=False)
class Padding(Mask):
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


@dataclass(frozen=True, eq=False)
class Allowed(Mask):
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
        _refuse_unless_broadcasts(self.where, grid.shape)
        return grid.cut(self.where)


@dataclass(frozen=True, eq=False)
class Additive(Mask):
    """A bias that is added to the logits after the temperature; −∞ forbids.

    The most negative finite number of the bias's dtype, which many models write for −∞, counts
    as −∞.

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
        _refuse_unless_broadcasts(self.bias, grid.shape)
        bias = grid.cut(self.bias)
        forbidden = bias <= torch.finfo(bias.dtype).min
        return (logits + bias.to(logits.dtype)).masked_fill(forbidden, -math.inf)

    def allowed(self, grid: Grid) -> Tensor:
        """Return True where the bias is finite."""
        _refuse_unless_broadcasts(self.bias, grid.shape)
        return grid.cut(self.bias) > torch.finfo(self.bias.dtype).min


_TRUSTED: ContextVar[bool] = ContextVar("trusted masks", default=False)


@contextmanager
def trusted_masks() -> Iterator[None]:
    """Skip the check that every query may attend to some key.

    Use it where mask values cannot be read (a vectorised call, a recorded graph). A query that
    may attend to no key then gets NaN.
    """
    token = _TRUSTED.set(True)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def masks_are_trusted() -> bool:
    """Return whether ``trusted_masks`` is active."""
    return _TRUSTED.get()


def _refuse_unless_broadcasts(given: Tensor, shape: torch.Size) -> None:
    padded = (1,) * (len(shape) - given.ndim) + tuple(given.shape)
    if len(padded) == len(shape) and all(g in (1, s) for g, s in zip(padded, shape, strict=True)):
        return
    raise BadInputError(
        f"expected a mask that broadcasts to logits of shape {tuple(shape)}, got shape "
        f"{tuple(given.shape)}",
        hint="pass (queries, keys), with leading dimensions of 1 or as in the logits",
    )
