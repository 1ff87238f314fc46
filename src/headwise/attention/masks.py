"""Masks: who may attend to whom. They compose with ``&`` and never need the whole matrix."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import BadInputError


@dataclass(frozen=True)
class Grid:
    """A block of rows and columns out of a batch of matrices of the whole ``shape``.

    >>> whole = Grid.whole(torch.Size([2, 3, 5]), torch.device("cpu"))
    >>> whole.block(slice(0, 2), slice(0, 5)).row_index.flatten()
    tensor([0, 1])
    """

    shape: torch.Size
    device: torch.device
    rows: slice
    columns: slice

    @classmethod
    def whole(cls, shape: torch.Size, device: torch.device) -> Grid:
        """All rows and columns."""
        return cls(shape, device, slice(0, shape[-2]), slice(0, shape[-1]))

    def block(self, rows: slice, columns: slice) -> Grid:
        """Only these rows and columns, counted in the whole matrix."""
        return Grid(self.shape, self.device, rows, columns)

    @property
    def row_index(self) -> Tensor:
        """The row numbers, standing."""
        return torch.arange(self.rows.start, self.rows.stop, device=self.device).unsqueeze(-1)

    @property
    def column_index(self) -> Tensor:
        """The column numbers, lying."""
        return torch.arange(self.columns.start, self.columns.stop, device=self.device)

    def cut(self, given: Tensor) -> Tensor:
        """This block of a tensor that broadcasts to the whole shape."""
        rows = slice(None) if given.shape[-2] == 1 else self.rows
        columns = slice(None) if given.shape[-1] == 1 else self.columns
        return given[..., rows, columns]


class Mask(ABC):
    """A rule that changes logits: minus infinity where attending is not allowed."""

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """The logits of this block of the grid, masked."""
        return logits.masked_fill(~self.allowed(grid), -math.inf)

    @abstractmethod
    def allowed(self, grid: Grid) -> Tensor:
        """True where the row may attend to the column; broadcasts to the block."""

    def __and__(self, other: Mask) -> Mask:
        """Both rules at once."""
        return Both(self, other)


@dataclass(frozen=True)
class Everything(Mask):
    """No mask: every query may attend to every key.

    >>> bool(Everything().allowed(Grid.whole(torch.Size([2, 2]), torch.device("cpu"))).all())
    True
    """

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """The logits as they are."""
        return logits

    def allowed(self, grid: Grid) -> Tensor:
        """True throughout."""
        return torch.ones(1, 1, dtype=torch.bool, device=grid.device)

    def __and__(self, other: Mask) -> Mask:
        """The other rule alone."""
        return other


EVERYTHING = Everything()


@dataclass(frozen=True)
class Both(Mask):
    """Two rules at once; written ``first & second``.

    >>> near = Causal() & SlidingWindow(2)
    >>> near.allowed(Grid.whole(torch.Size([3, 3]), torch.device("cpu"))).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """

    first: Mask
    second: Mask

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """The logits after one rule and then the other."""
        return self.second.apply(self.first.apply(logits, grid), grid)

    def allowed(self, grid: Grid) -> Tensor:
        """True where both rules allow."""
        return self.first.allowed(grid) & self.second.allowed(grid)


@dataclass(frozen=True)
class Causal(Mask):
    """Query i attends to keys 0 … i + offset.

    With n queries and m keys of which the last n belong to the queries, offset is m − n.

    >>> Causal().allowed(Grid.whole(torch.Size([2, 2]), torch.device("cpu"))).int()
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """

    offset: int = 0

    def allowed(self, grid: Grid) -> Tensor:
        """True on and below the diagonal."""
        return grid.column_index <= grid.row_index + self.offset


@dataclass(frozen=True)
class SlidingWindow(Mask):
    """Query i attends to keys less than ``width`` positions away, on both sides.

    >>> SlidingWindow(1).allowed(Grid.whole(torch.Size([2, 2]), torch.device("cpu"))).int()
    tensor([[1, 0],
            [0, 1]], dtype=torch.int32)
    """

    width: int

    def __post_init__(self) -> None:
        if self.width < 1:
            raise BadInputError(
                f"a sliding window of width {self.width} lets no key in",
                hint="pass a width of at least 1",
            )

    def allowed(self, grid: Grid) -> Tensor:
        """True in a band around the diagonal."""
        return (grid.column_index - grid.row_index).abs() < self.width


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    """No query attends to padded keys; ``real`` is true where a token is real: (..., keys).

    Its batch dimensions are the leading ones of the logits, so (batch, keys) serves logits of
    shape (batch, heads, queries, keys).

    >>> Padding.of_lengths(torch.tensor([1, 3]), size=3).real.int()
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    real: Tensor

    def __post_init__(self) -> None:
        if self.real.dtype != torch.bool:
            raise BadInputError(
                f"a padding mask has dtype {_name(self.real.dtype)}",
                hint="pass booleans, true where a token is real",
            )

    @classmethod
    def of_lengths(cls, lengths: Tensor, size: int) -> Padding:
        """The mask of sequences of these lengths, padded at the end to ``size``."""
        return cls(torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1))

    def allowed(self, grid: Grid) -> Tensor:
        """True in the columns of real tokens."""
        batch = self.real.shape[:-1]
        if (*batch, self.real.shape[-1]) != (*grid.shape[: len(batch)], grid.shape[-1]):
            raise BadInputError(
                f"a padding mask of shape {tuple(self.real.shape)} does not fit "
                f"logits of shape {tuple(grid.shape)}",
                hint="pass (batch, keys), the batch being the leading dimensions of the logits",
            )
        between = (1,) * (len(grid.shape) - 1 - len(batch))
        return self.real[..., grid.columns].reshape(*batch, *between, -1)


@dataclass(frozen=True, eq=False)
class Allowed(Mask):
    """An arbitrary boolean mask, true where attending is allowed.

    >>> Allowed(torch.tensor([[True, False]])).allowed(
    ...     Grid.whole(torch.Size([3, 2]), torch.device("cpu"))
    ... )
    tensor([[ True, False]])
    """

    where: Tensor

    def allowed(self, grid: Grid) -> Tensor:
        """The part of the mask that lies in the block."""
        _refuse_unless_broadcasts(self.where, grid.shape)
        return grid.cut(self.where)


@dataclass(frozen=True, eq=False)
class Additive(Mask):
    """An arbitrary bias added to the logits after the temperature; −∞ forbids.

    The most negative finite number of the bias's own dtype, which many models write for −∞,
    is read as −∞. A bias is taken as meant, whatever its dtype.

    >>> bias = torch.tensor([[0.0, -torch.inf]])
    >>> Additive(bias).apply(torch.zeros(1, 2), Grid.whole(torch.Size([1, 2]), bias.device))
    tensor([[0., -inf]])
    """

    bias: Tensor

    def __post_init__(self) -> None:
        if bool((self.bias.isnan() | (self.bias == math.inf)).any()):
            raise BadInputError(
                "the additive mask has NaN or +infinity",
                hint="pass finite biases, and -infinity where attending is not allowed",
            )

    def apply(self, logits: Tensor, grid: Grid) -> Tensor:
        """The logits plus the bias."""
        _refuse_unless_broadcasts(self.bias, grid.shape)
        bias = grid.cut(self.bias)
        forbidden = bias <= torch.finfo(bias.dtype).min
        return (logits + bias.to(logits.dtype)).masked_fill(forbidden, -math.inf)

    def allowed(self, grid: Grid) -> Tensor:
        """True where the bias is finite."""
        _refuse_unless_broadcasts(self.bias, grid.shape)
        return grid.cut(self.bias) > torch.finfo(self.bias.dtype).min


def as_mask(mask: Mask | Tensor) -> Mask:
    """A mask object from a boolean (true: may attend) or a floating (additive) tensor.

    >>> type(as_mask(torch.ones(2, 2, dtype=torch.bool))).__name__
    'Allowed'
    """
    if isinstance(mask, Mask):
        return mask
    if mask.ndim < 2:
        raise BadInputError(
            f"the mask has shape {tuple(mask.shape)}",
            hint="pass (..., queries, keys), or Padding(real) for one row per sequence",
        )
    if mask.dtype == torch.bool:
        return Allowed(mask)
    if mask.is_floating_point():
        return Additive(mask)
    raise BadInputError(
        f"the mask has dtype {_name(mask.dtype)}",
        hint="pass booleans (true: may attend) or floats that are added to the logits",
    )


_TRUSTED: ContextVar[bool] = ContextVar("trusted masks", default=False)


@contextmanager
def trusted_masks() -> Iterator[None]:
    """Inside, layers take it that every query may attend to some key, and do not look.

    Where the values of a mask cannot be looked at (a vectorised call, a recorded graph). A
    query that may attend to nothing gets NaN there.

    >>> with trusted_masks():
    ...     masks_are_trusted()
    True
    """
    token = _TRUSTED.set(True)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def masks_are_trusted() -> bool:
    """Whether ``trusted_masks`` is in force.

    >>> masks_are_trusted()
    False
    """
    return _TRUSTED.get()


def refuse_masked_rows(row_maximum: Tensor) -> None:
    """Refuse if a row of logits, given by its maximum, is minus infinity throughout."""
    masked = row_maximum == -math.inf
    if not bool(masked.any()):
        return
    *matrix, row = masked.nonzero()[0].tolist()
    where = f" of matrix {tuple(matrix)}" if matrix else ""
    raise BadInputError(
        f"row {row}{where} masks every key ({int(masked.sum())} such rows in all)",
        hint="drop those rows (padding), or let each attend to at least one key",
    )


def _refuse_unless_broadcasts(given: Tensor, shape: torch.Size) -> None:
    padded = (1,) * (len(shape) - given.ndim) + tuple(given.shape)
    if len(padded) == len(shape) and all(g in (1, s) for g, s in zip(padded, shape, strict=True)):
        return
    raise BadInputError(
        f"a mask of shape {tuple(given.shape)} does not fit logits of shape {tuple(shape)}",
        hint="pass (queries, keys), with leading dimensions of 1 or as in the logits",
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
