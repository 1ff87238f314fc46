"""The result of ``rank``: one row per matrix, as a table, a frame or a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.report.results import Drawable, Tabular
from headwise.spectra import Certificate, Tolerance


@dataclass(frozen=True)
class MatrixRank:
    """The ranks of one matrix.

    Args:
        index: Place of the matrix in the batch; empty for a single matrix.
        rank: The certified number of singular values of at least ``tolerance``.
        tolerance: The tolerance ε that the rule gave for this matrix.
        stable_rank: ‖A‖_F² / ‖A‖₂².
        effective_rank: exp of the entropy of the normalised singular values.
        energy_rank_90: How many leading singular values hold 90 % of ‖A‖_F².
        energy_rank_99: The same for 99 %.

    Example:
        >>> import headwise
        >>> headwise.rank(torch.eye(3, dtype=torch.float64)).rows[0].energy_rank_90
        3
    """

    index: tuple[int, ...]
    rank: Certificate
    tolerance: float
    stable_rank: float
    effective_rank: float
    energy_rank_90: int
    energy_rank_99: int


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Tabular, Drawable):
    """The ranks of one matrix or of a batch.

    Args:
        rows: One row for each matrix.
        singular_values: The singular values, largest first, (matrices, min(rows, columns)).
        description: What was measured, in words.
        shape: The shape of the input, batch dimensions first.
        dtype: The dtype that the numbers were stored in.
        rule: The rule that says which singular values count.
        temperature: The divisor of q·k; None unless queries and keys were given.
        mask: Name of the mask; None unless queries and keys were given.
        note: A hint if a matrix looks like logits, or logits look like a matrix; else None.
        inputs: What was asked for, as JSON repeats it: files and rules by their names.

    ``to_frame`` has a row for each matrix: its index, the fields of the certificate, and the other
    ranks. ``plot`` draws the singular values of the first eight, and the tolerance.

    Example:
        >>> import headwise
        >>> found = headwise.rank(torch.ones(2, 3, 3, dtype=torch.float64) / 3)
        >>> found
        Ranks(2 matrices of 3 × 3, rank 1, certain)
        >>> found.rows[1].rank.low
        1
    """

    rows: tuple[MatrixRank, ...]
    singular_values: Tensor
    description: str
    shape: torch.Size
    dtype: torch.dtype
    rule: Tolerance
    temperature: float | None = None
    mask: str | None = None
    note: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def __int__(self) -> int:
        if len(self.rows) != 1:
            raise BadInputError(
                f"expected one matrix, got {len(self.rows)}", hint="read the rank of each row"
            )
        return int(self.rows[0].rank)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        low, high = min(r.rank.low for r in self.rows), max(r.rank.high for r in self.rows)
        open_ = sum(not row.rank.exact for row in self.rows)
        size, many = " × ".join(map(str, self.shape[-2:])), len(self.rows) > 1
        matrices = f"{len(self.rows):,} matrices of {size}" if many else f"{size} matrix"
        if low == high:
            ranks = f"rank {low}"
        else:
            ranks = f"ranks {low} to {high}" if many else f"rank between {low} and {high}"
        certain = f"{open_:,} not certain" if many else "not certain"
        return f"Ranks({matrices}, {ranks}, {certain if open_ else 'certain'})"

    def _rows(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            others = {name: each for name, each in vars(row).items() if name != "rank"}
            yield {"index": row.index} | vars(row.rank) | others

    def as_json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return what ``headwise rank --json`` prints.

        Returns:
            An object with values that JSON can write; for a batch a list of them, one per matrix.
        """
        common = {
            "dtype": str(self.dtype).removeprefix("torch."),
            "shape": list(self.shape[-2:]),
            "temperature": self.temperature,
            "mask": self.mask,
            "inputs": dict(self.inputs),
        }
        objects = [
            ({"index": list(row.index)} if row.index else {})
            | {
                "rank": {"low": row.rank.low, "high": row.rank.high},
                "method": row.rank.method,
                "delta": row.rank.delta,
                "reason": row.rank.reason,
                "tolerance": row.tolerance,
                "stable_rank": row.stable_rank,
                "effective_rank": row.effective_rank,
                "energy_rank_90": row.energy_rank_90,
                "energy_rank_99": row.energy_rank_99,
            }
            | common
            for row in self.rows
        ]
        return objects if len(self.shape) > 2 else objects[0]

    def _figure(self) -> Any:
        from headwise.spectra.figures import spectrum_figure

        rows = zip((row.index for row in self.rows), self.singular_values.tolist(), strict=True)
        return spectrum_figure(rows, self.rows[0].tolerance)
