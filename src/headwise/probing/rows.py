"""The result of a scan: one row for each layer and head, as a table, a frame, a file, a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from headwise.checks import one_of
from headwise.probing.heat_map import Scale, heat_map
from headwise.report import data_frame, save
from headwise.whole_files import write_whole

#: The columns that have one number for each head.
Column = Literal[
    "coarse_rank",
    "output_rank",
    "rank",
    "effective_rank",
    "stable_rank",
    "energy_90",
    "hardmax_rank",
    "query_key_rank",
    "logit_rank",
    "logit_scale",
]

#: What each column is called in a figure.
TITLES: dict[str, str] = {
    "coarse_rank": "singular values ≥ 0.01",
    "output_rank": "rank of the output to 1 %",
    "rank": "singular values ≥ 1e-8",
    "effective_rank": "effective rank",
    "stable_rank": "stable rank",
    "energy_90": "rank of 90 % of the energy",
    "hardmax_rank": "hardmax rank",
    "query_key_rank": "query-key rank to 0.1 nat",
    "logit_rank": "rank of the logits",
    "logit_scale": "standard deviation of the logits",
}

#: Which field of a row a column cannot exceed, and what to call that limit.
_LIMITS = {
    "coarse_rank": "tokens",
    "rank": "tokens",
    "hardmax_rank": "tokens",
    "output_rank": "value_dim",
    "query_key_rank": "head_dim",
    "logit_rank": "head_dim",
}
_OF = {
    "tokens": "of {:.0f} tokens",
    "value_dim": "of {:.0f} value dimensions",
    "head_dim": "of {:.0f} dimensions",
}


@dataclass(frozen=True)
class HeadRow:
    """One head of one layer; every number is a mean over the sequences.

    None means that the number is not known: values or queries were not read, or the sequence is
    so long that the matrix is not formed.

    Attributes:
        layer: Name of the layer.
        head: Index of the head.
        coarse_rank: Number of singular values of at least 0.01. Dropping the others changes the
            output A·V by at most 1 % of ‖V‖₂.
        output_rank: Least k for which a matrix of rank k is within 1 % of A·V, in Frobenius norm.
        rank_low: Certified lower end of the number of singular values of at least 1e-8, or of at
            least the dtype floor if only attention maps could be read.
        rank_high: Certified upper end of that number.
        effective_rank: exp of the entropy of the normalised singular values.
        effective_rank_error: Standard error of ``effective_rank``; zero if it was computed from
            all singular values.
        stable_rank: ‖A‖_F² / ‖A‖₂².
        energy_90: How many leading singular values hold 90 % of ‖A‖_F².
        hardmax_rank: Number of different keys that some query scores highest.
        law: The hardmax rank that random Gaussian queries and keys of this size have on average.
        logit_rank: Numerical rank of the logits q·k, to the accuracy of the model's dtype.
        query_key_rank: Least r for which logits of rank r are within 0.1 of the logits, in root
            mean square and up to a constant per row, which softmax ignores. Rows of the attention
            matrix then move by about 0.005 nats.
        form_rank: Numerical rank of W_Q W_Kᵀ; None where positions make it more than one matrix.
        logit_scale: Standard deviation of the logits that the mask leaves.
        tokens: Number of tokens without padding.
        head_dim: Dimension of queries and keys.
        value_dim: Dimension of values.
        mask: Name of the mask without padding.
        dtype: The dtype in which the model computed.
        sequences: Number of sequences.
        excluded: Number of query rows that attend to nothing and were left out.
        method: "dense", or "matrix-free" for long sequences.
    """

    layer: str
    head: int
    coarse_rank: float | None
    output_rank: float | None
    rank_low: float | None
    rank_high: float | None
    effective_rank: float | None
    effective_rank_error: float | None
    stable_rank: float | None
    energy_90: float | None
    hardmax_rank: float | None
    law: float | None
    logit_rank: float | None
    query_key_rank: float | None
    form_rank: int | None
    logit_scale: float | None
    tokens: float
    head_dim: int | None
    value_dim: int | None
    mask: str
    dtype: str
    sequences: int
    excluded: int
    method: str

    @property
    def rank(self) -> float | None:
        """The middle of the certified interval."""
        if self.rank_low is None or self.rank_high is None:
            return None
        return (self.rank_low + self.rank_high) / 2


@dataclass(frozen=True, repr=False)
class Scan:
    """The rows of a scan, one for each layer and head, in the order of the forward pass.

    Args:
        rows: The rows.
        initial: The same model with new weights, if that was asked for.
        notes: What a reader should know, one sentence each.
        kv_heads: Key-value heads of each layer, by name.
        width: Width of the model, if known.

    Example:
        >>> import torch
        >>> from headwise import mha, scan
        >>> from headwise.attention import HeadGeometry
        >>> found = scan(mha(HeadGeometry.standard(8, heads=2)), torch.zeros(1, 6, 8))
        >>> found.table("rank")
        [[1.0, 1.0]]
    """

    rows: tuple[HeadRow, ...]
    initial: Scan | None = None
    notes: tuple[str, ...] = ()
    kv_heads: dict[str, int] = field(default_factory=dict)
    width: int | None = None

    @property
    def layers(self) -> list[str]:
        """The names of the layers."""
        return list(dict.fromkeys(row.layer for row in self.rows))

    def __repr__(self) -> str:
        known = [row.coarse_rank / row.tokens for row in self.rows if row.coarse_rank is not None]
        share = f"{sum(known) / len(known):.2f} of the tokens" if known else "not known"
        return (
            f"Scan({counted(len(self.layers), 'layer')}, {counted(len(self.rows), 'head')}, mean "
            f"rank at 1e-2: {share})"
        )

    def of_layer(self, layer: str) -> list[HeadRow]:
        """Return the rows of one layer.

        Args:
            layer: Its name.

        Returns:
            One row for each head that was scanned.
        """
        return [row for row in self.rows if row.layer == layer]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns:
            A frame with the fields of ``HeadRow`` as columns.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        return data_frame(map(asdict, self.rows), [each.name for each in fields(HeadRow)])

    def table(self, column: Column = "coarse_rank") -> list[list[float]]:
        """Return one column as layers × heads; NaN where a number is missing.

        Args:
            column: Which number.

        Returns:
            One list of heads for each layer.

        Raises:
            ParameterError: If there is no such column.
        """
        one_of("`column`", column, get_args(Column))
        heads = 1 + max((row.head for row in self.rows), default=-1)
        found = {layer: [float("nan")] * heads for layer in self.layers}
        for row in self.rows:
            value = getattr(row, column)
            found[row.layer][row.head] = float("nan") if value is None else float(value)
        return list(found.values())

    def write_csv(self, file: str | Path) -> Path:
        """Write the rows as CSV; with ``initial``, its numbers follow in separate columns.

        Args:
            file: Where to write.

        Returns:
            The path.
        """
        names = [each.name for each in fields(HeadRow)]
        first = {} if self.initial is None else {_place(row): row for row in self.initial.rows}
        numbers = [name for name in names if name in _NUMBERS] if first else []
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*names, *(f"initial_{name}" for name in numbers)])
        for row in self.rows:
            start = first.get(_place(row))
            writer.writerow([*_cells(row, names), *(_cells(start, numbers) if start else ())])
        return write_whole(Path(file), out.getvalue().encode(), hint="choose another folder")

    def plot(
        self,
        column: Column = "coarse_rank",
        file: str | Path | None = None,
        scale: Scale | None = None,
    ) -> Any:
        """Draw one column as a heat map of layers × heads.

        Args:
            column: Which number.
            file: Where to save the figure: png, svg or pdf. None saves nothing.
            scale: The colours; ``self.scale(column)`` by default.

        Returns:
            The matplotlib figure.

        Raises:
            BadInputError: If the file cannot be written.
            ParameterError: If there is no such column.
        """
        scale = scale or self.scale(one_of("`column`", column, get_args(Column)))
        return save(heat_map(self.table(column), self.layers, self._title(column), scale), file)

    def scale(self, column: Column) -> Scale:
        """Return the colours of a heat map: up to the largest number that the column could have.

        Args:
            column: Which number.

        Returns:
            A scale that ends at the number of tokens or dimensions, or at the largest number
            here and in ``initial`` where there is no such limit.
        """
        of = _LIMITS.get(column)
        if of is not None:
            known = [value for row in self.rows if (value := getattr(row, of)) is not None]
            most = float(max(known, default=1.0))
            return Scale(most, _OF[of].format(most))
        rows = (*self.rows, *(self.initial.rows if self.initial is not None else ()))
        known = [value for row in rows if (value := getattr(row, column)) is not None]
        return Scale(float(max(known, default=1.0)))

    def _title(self, column: Column) -> str:
        law = mean_of(self.rows, "law") if column == "hardmax_rank" else None
        return TITLES[column] + ("" if law is None else f" (random heads: {law:.0f})")


#: The fields that depend on the weights and can be compared with other weights.
_NUMBERS = frozenset(
    {"coarse_rank", "output_rank", "rank_low", "rank_high", "effective_rank", "stable_rank"}
    | {"energy_90", "hardmax_rank", "query_key_rank", "logit_scale"}
)


def _place(row: HeadRow) -> tuple[str, int]:
    return row.layer, row.head


def _cells(row: HeadRow, names: Sequence[str]) -> list[Any]:
    values = (getattr(row, name) for name in names)
    return ["" if value is None else value for value in values]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "layer"), counted(2, "layer")
    ('1 layer', '2 layers')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def mean_of(rows: Iterable[HeadRow], column: str) -> float | None:
    """Return the mean of a column over the rows in which it is known.

    Args:
        rows: The rows.
        column: A field of ``HeadRow``.

    Returns:
        The mean, or None if no row has the number.

    Example:
        >>> mean_of([], "stable_rank") is None
        True
    """
    known = [value for row in rows if (value := getattr(row, column)) is not None]
    return sum(known) / len(known) if known else None
