"""Exhibits as files: figures beside each other, and one page that holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headwise.papers.comparison import RULE, comparison_table, verdict, within_noise
from headwise.papers.exhibit import Claim, Presentation
from headwise.papers.reproduction import Reproduced
from headwise.report import (
    Panel,
    Section,
    Table,
    page,
    render_all,
    save_rendered,
    svg_element,
    write_page,
)
from headwise.report.rendering import Rendered
from headwise.version import __version__

#: What the page is called.
PAGE = "report.html"


def write_exhibits(found: Sequence[Reproduced], folder: Path, processes: int = 1) -> list[Path]:
    """Write every figure as PNG, SVG and PDF, and the page; the page comes first.

    Args:
        found: The exhibits.
        folder: Where the files go.
        processes: How many processes may draw.

    Returns:
        The files that were written.
    """
    panels = figures_of(found)
    rendered = dict(zip(panels, render_all(list(panels.values()), processes), strict=True))
    figures = [
        path
        for name, files in rendered.items()
        for path in save_rendered(files, folder / name.replace("/", "_"))
    ]
    sections, drawn = [], set[str]()
    for one in found:
        if one.presentation is not None:
            # Two scales of one exhibit share its figure, which stands with the first.
            files = rendered.get(one.name) if one.name not in drawn else None
            drawn.add(one.name)
            sections.append(_section(one, one.presentation, files))
    text = page(
        "Exhibits reproduced by headwise", RULE, sections, _foot(), summary=summary_table(found)
    )
    return [write_page(text, folder / PAGE), *figures]


def figures_of(found: Sequence[Reproduced]) -> dict[str, list[Panel]]:
    """Return the panels of each exhibit by name; the panels of two scales stand side by side."""
    figures: dict[str, list[Panel]] = {}
    for one in found:
        own = figures.setdefault(one.name, [])
        beside = f", scale {one.wanted.scale.value}" if own else ""
        own += [replace(panel, title=panel.title + beside) for panel in one.shown.panels]
    return {name: panels for name, panels in figures.items() if panels}


def summary_table(found: Sequence[Reproduced]) -> Table:
    """Return one row for each exhibit: source, scale, published values, and claims by source."""
    rows = []
    for one in found:
        shown = one.shown
        values = one.problem
        if one.presentation is not None:
            values = verdict(shown.cells, one.why_uncompared)
        scale = one.wanted.scale.value + (", in part" if one.problem and one.presentation else "")
        rows.append(
            (
                one.name,
                one.wanted.exhibit.source,
                scale,
                values,
                within_noise(shown.cells),
                held(shown.claims_by(printed=True)),
                held(shown.claims_by(printed=False)),
            )
        )
    return Table(SUMMARY, tuple(rows))


#: The columns of the summary.
SUMMARY = (
    "exhibit",
    "published as",
    "scale",
    "published values",
    "within 3 standard errors",
    "published claims",
    "our claims",
)


def held(claims: Sequence[Claim]) -> str:
    """Return how many claims hold, in words; nothing if there are none."""
    return f"{sum(c.holds for c in claims)} of {len(claims)} hold" if claims else ""


def claims_table(shown: Presentation) -> list[Table]:
    """Return what is claimed, by whom, and whether the rows show it; no table without claims."""
    if not shown.claims:
        return []
    rows = tuple(
        (claim.words, claim.source, "holds" if claim.holds else "does not hold")
        for claim in shown.claims
    )
    stressed = frozenset((i, 2) for i, claim in enumerate(shown.claims) if not claim.holds)
    return [Table(("claim", "source", "seen"), rows, stressed, title="Claims, and what was seen")]


def values_words(shown: Presentation) -> list[str]:
    """Return how many published values agree, as a sentence; nothing if none is compared."""
    if not shown.cells:
        return []
    alone = within_noise(shown.cells)
    return [f"Published values: {verdict(shown.cells)}; {alone} lie within 3 standard errors."]


def _foot() -> str:
    return (
        f"headwise {__version__}. What was measured, simulated or trained comes from stored rows; "
        "bounds and laws may be recomputed from their formulas."
    )


def _section(one: Reproduced, shown: Presentation, files: Rendered | None) -> Section:
    tables = [*claims_table(shown), *shown.tables]
    tables += [comparison_table(shown.cells)] if shown.cells else []
    source = one.wanted.exhibit.printed
    return Section(
        title=f"{one.title} ({one.name}, {one.wanted.scale.value})",
        words=(
            f"Published as {source}."
            if source
            else "This exhibit is ours; it is in neither paper.",
            one.wanted.exhibit.caption,
            *shown.remarks,
            *values_words(shown),
            "Computed with " + "; ".join(one.sources) + ".",
        ),
        figures=(svg_element(files),) if files is not None else (),
        tables=tuple(tables),
    )
