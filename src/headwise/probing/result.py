"""The result of a scan: one row for each layer and head, as a table, a frame, a file, a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from headwise.checks import one_of
from headwise.probing.heat_map import Scale, heat_map
from headwise.probing.page import document
from headwise.probing.rows import LIMITS, TITLES, Column, HeadRow, mean_of
from headwise.probing.summary import summary
from headwise.report import save, write_page
from headwise.report.results import Tabular
from headwise.report.tables import counted
from headwise.whole_files import write_whole

#: What to call the limit of a column.
_OF = {
    "tokens": "of {:.0f} tokens",
    "value_dim": "of {:.0f} value dimensions",
    "head_dim": "of {:.0f} dimensions",
}


@dataclass(frozen=True, repr=False)
class Scan(Tabular):
    """The rows of a scan, one for each layer and head, in the order of the forward pass.

    Args:
        rows: The rows.
        initial: The same model with new weights, if that was asked for.
        notes: What a reader should know, one sentence each.
        kv_heads: Key-value heads of each layer, by name.
        width: Width of the model, if known.
        model: What the model is called: the last part of its path, or its class.

    ``to_frame`` has the fields of ``HeadRow`` as columns.

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
    model: str = "a model"

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

    def _rows(self) -> Iterator[dict[str, Any]]:
        return map(asdict, self.rows)

    def _columns(self) -> list[str]:
        return [each.name for each in fields(HeadRow)]

    def as_json(self) -> dict[str, Any]:
        """Return summary, notes and rows as values that JSON can write.

        Returns:
            A mapping with "model", "summary", "notes", "rows" and, if it was measured, "initial".
        """
        written: dict[str, Any] = {
            "model": self.model,
            "summary": asdict(summary(self)),
            "notes": list(self.notes),
            "rows": [asdict(row) for row in self.rows],
        }
        if self.initial is not None:
            written["initial"] = [asdict(row) for row in self.initial.rows]
        return written

    def report(self, path: str | Path, *, command: str = "") -> Path:
        """Write an HTML report that needs no other file: summary, heat maps and every row.

        Args:
            path: Where to write it.
            command: The command to print at the foot.

        Returns:
            The path.
        """
        return write_page(document(self, command), path)

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
        content = out.getvalue().encode(errors="replace")
        return write_whole(Path(file), content, hint="choose another folder")

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
        of = LIMITS.get(column)
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
    return [_cell(getattr(row, name)) for name in names]


def _cell(value: Any) -> Any:
    """A mean that is whole is written as a whole number: it counts something."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return "" if value is None else value
