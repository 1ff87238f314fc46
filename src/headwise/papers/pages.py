"""Exhibits as files: figures beside each other, and one page that holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwise.papers.comparison import RULE, comparison_table, verdict
from headwise.papers.exhibit import Presentation
from headwise.papers.reproduction import Reproduced
from headwise.report import (
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
    """Every figure as PNG, SVG and PDF, and the page; the page comes first.

    Many figures are drawn by up to so many processes.
    """
    shown = [(one, one.presentation) for one in found if one.presentation is not None]
    rendered = render_all([each.panels for _, each in shown if each.panels], processes)
    figures: list[Path] = []
    sections = []
    for one, each in shown:
        files = next(rendered) if each.panels else None
        if files is not None:
            figures += save_rendered(files, folder / one.wanted.exhibit.name.replace("/", "_"))
        sections.append(_section(one, each, files))
    text = page("Exhibits reproduced by headwise", _lead(found), sections, _foot())
    return [write_page(text, folder / PAGE), *figures]


def summary_table(found: Sequence[Reproduced]) -> Table:
    """One line for each exhibit: scale, printed cells, claims.

    >>> summary_table([]).columns
    ('exhibit', 'scale', 'printed values', 'claims')
    """
    rows = []
    for one in found:
        name, scale = one.wanted.exhibit.name, one.wanted.scale.value
        if one.presentation is None:
            rows.append((name, scale, one.problem, ""))
        else:
            shown = one.presentation
            rows.append((name, scale, verdict(shown.cells, one.why_uncompared), claims_held(shown)))
    return Table(("exhibit", "scale", "printed values", "claims"), tuple(rows))


def claims_held(presentation: Presentation) -> str:
    """How many of the claims hold, in words; nothing where there are none.

    >>> claims_held(Presentation(claims=(("a", True), ("b", False))))
    '1 of 2 hold'
    """
    if not presentation.claims:
        return ""
    held = sum(claim.holds for claim in presentation.claims)
    return f"{held} of {len(presentation.claims)} hold"


def _lead(found: Sequence[Reproduced]) -> str:
    drawn = sum(one.presentation is not None for one in found)
    return f"{drawn} exhibit{'' if drawn == 1 else 's'}. {RULE}"


def _foot() -> str:
    return (
        f"headwise {__version__}. What was measured, simulated or trained comes from stored rows; "
        "bounds and laws may be computed anew from their formulas."
    )


def _section(one: Reproduced, shown: Presentation, files: Rendered | None) -> Section:
    tables = [*claims_table(shown), *shown.tables]
    tables += [comparison_table(shown.cells)] if shown.cells else []
    return Section(
        title=f"{one.title} ({one.wanted.exhibit.name}, {one.wanted.scale.value})",
        words=(
            one.wanted.exhibit.caption,
            *shown.remarks,
            *([f"Printed values: {verdict(shown.cells)}."] if shown.cells else []),
            "Computed with " + "; ".join(one.sources) + ".",
        ),
        figures=(svg_element(files),) if files is not None else (),
        tables=tuple(tables),
    )


def claims_table(shown: Presentation) -> list[Table]:
    """What a paper says in words, and whether it was seen; no table where it says nothing.

    >>> claims_table(Presentation(claims=(("Rank levels off.", True),)))[0].rows
    (('Rank levels off.', 'holds', 'ours'),)
    """
    if not shown.claims:
        return []
    rows = tuple(
        (claim.words, "holds" if claim.holds else "does not hold", claim.source)
        for claim in shown.claims
    )
    stressed = frozenset((i, 1) for i, claim in enumerate(shown.claims) if not claim.holds)
    return [Table(("claim", "seen", "source"), rows, stressed, title="Claims, and what was seen")]
