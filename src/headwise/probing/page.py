"""A scan as figures and as one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.probing.heat_map import heat_map
from headwise.probing.rows import (
    LEGEND,
    LEGEND_OF_THE_REST,
    TITLES,
    Column,
    HeadRow,
    mean_of,
)
from headwise.probing.summary import described, sentences, summary
from headwise.report import Section, Table, inline_svg, page

if TYPE_CHECKING:
    from headwise.probing.result import Scan

#: The columns of the page, each with what it says.
MAPS: tuple[tuple[Column, str], ...] = (
    (
        "coarse_rank",
        "Dropping every singular value below 0.01 changes the output A·V by at most 1% of ‖V‖₂, "
        "about what bfloat16 rounds away. At 1e-8 nearly every trained head has full rank.",
    ),
    ("output_rank", "A matrix of this rank is within 1% of the head's output A·V."),
    (
        "query_key_rank",
        "Logits of this rank are within 0.1 of the head's in root mean square, up to a constant "
        "per row. A row of weights then moves by about 0.005 nats.",
    ),
    ("hardmax_rank", "The number of different keys that some query scores highest."),
    ("effective_rank", "exp of the entropy of the normalised singular values."),
    ("logit_scale", "Small logits give nearly uniform rows, large ones nearly one-hot rows."),
)


def document(found: Scan, command: str = "") -> str:
    """Return the scan as an HTML page: summary, heat maps and every row."""
    facts = summary(found)
    sections = [Section("Summary", (*sentences(facts), *found.notes))]
    for column, words in MAPS:
        if mean_of(found.rows, column) is not None:
            sections.append(Section(TITLES[column].capitalize(), (words,), _figures(found, column)))
    sections.append(Section("Every head", tables=(_rows_table(found),)))
    sections.append(Section("What the columns mean", (" ".join(LEGEND), LEGEND_OF_THE_REST)))
    return page(f"Ranks of {found.model}", f"{described(found)}.", sections, command)


def _figures(found: Scan, column: Column) -> tuple[str, ...]:
    scale = found.scale(column)
    drawn = [inline_svg(found.plot(column, scale=scale))]
    if found.initial is not None:
        start = found.initial
        title = f"{TITLES[column]}, new weights"
        drawn.append(inline_svg(heat_map(start.table(column), start.layers, title, scale)))
    return tuple(drawn)


def _rows_table(found: Scan) -> Table:
    columns = ("layer", "head", "rank 0.01", "output", "rank 1e-8", "eff. rank", "stable rank")
    columns += ("energy 90%", "hardmax", "law", "query-key", "logit rank", "W_QᵀW_K")
    columns += ("logit scale", "mask")
    return Table(columns, tuple(_cells(row) for row in found.rows))


def _cells(row: HeadRow) -> tuple[Any, ...]:
    certain = row.rank_low == row.rank_high
    rank = row.rank_low if certain else f"{row.rank_low:g} to {row.rank_high:g}"
    return (
        row.layer,
        row.head,
        row.coarse_rank,
        row.output_rank,
        rank,
        row.effective_rank,
        row.stable_rank,
        row.energy_90,
        row.hardmax_rank,
        row.law,
        row.query_key_rank,
        row.logit_rank,
        row.form_rank,
        row.logit_scale,
        row.mask,
    )
