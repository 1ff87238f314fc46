"""A block of rows and columns of attention matrices, and the part of a tensor that lies in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import BadInputError

#: No two tokens are further apart; sums of distances stay far within 64 bits.
FARTHEST = 10**9


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
        shape = self.shape
        padded = (1,) * (len(shape) - given.ndim) + tuple(given.shape)
        if len(padded) != len(shape) or any(
            g not in (1, s) for g, s in zip(padded, shape, strict=True)
        ):
            raise BadInputError(
                f"expected a mask that broadcasts to logits of shape {tuple(shape)}, got shape "
                f"{tuple(given.shape)}",
                hint="pass (queries, keys), with leading dimensions of 1 or as in the logits",
            )
        rows = slice(None) if given.shape[-2] == 1 else self.rows
        columns = slice(None) if given.shape[-1] == 1 else self.columns
        return given[..., rows, columns]

    def of_head(self, given: Tensor, sequence: int, head: int) -> Tensor:
        """Return the part of one head on one sequence as (1, 1, queries, keys)."""
        return given.expand(self.shape)[sequence, head][None, None]

    def of_tokens(self, given: Tensor, sequence: int, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the part of one sequence, and of it these rows and columns."""
        return given.expand(self.shape)[sequence][:, rows][..., columns].unsqueeze(0)
