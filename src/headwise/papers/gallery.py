"""The gallery: every exhibit as a page of Markdown, written from the rows that come with headwise.

Nothing is measured, simulated or trained; an exhibit without rows is named with the command that
computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwise.papers.comparison import RULE, comparison_table, verdict
from headwise.papers.exhibit import Exhibit, Presentation, Scale
from headwise.papers.pages import claims_held, claims_table
from headwise.papers.reproduction import Reproduced, Wanted, from_records, largest_recorded
from headwise.report import Table, draw, inline_svg

#: Where the page finds the figures, seen from itself.
FIGURES = "figures/exhibits"

_HEAD = f"""# Exhibits

Figures and tables of the papers, recomputed. This page is written by
`python docs/make_exhibits.py` from rows that come with headwise; nothing is measured, simulated or
trained for it, and only some bounds and laws are computed anew from their formulas.

{RULE} The first sentence was fixed before anything was run; the others came with the trained
figures, and only make agreement harder. Claims are what a paper says in words, each judged from
the rows.

[Reproduce an exhibit](how-to/reproduce.md) says how to compute them yourself.
"""


#: Exhibits with what their recorded rows show; None where there are none.
Shown = Sequence[tuple[Exhibit, Reproduced | None]]


def shown(exhibits: Sequence[Exhibit]) -> Shown:
    """Each exhibit with the rows of its largest recorded scale.

    >>> shown([])
    []
    """
    wanted = [(exhibit, largest_recorded(exhibit)) for exhibit in exhibits]
    return [(exhibit, from_records(one) if one else None) for exhibit, one in wanted]


def gallery_page(found: Shown) -> str:
    """The page: a table of all exhibits, then a section for each.

    >>> gallery_page([]).splitlines()[0]
    '# Exhibits'
    """
    parts = [_HEAD, _overview(found), *(_section(exhibit, one) for exhibit, one in found)]
    return "\n".join(parts)


def story_part(found: Shown) -> str:
    """For a page that tells a story: of every exhibit with rows its figure, claims and a link.

    >>> story_part([])
    ''
    """
    return "\n".join(_told(exhibit, one) for exhibit, one in found if one is not None)


def _told(exhibit: Exhibit, one: Reproduced) -> str:
    lines, known = [f"### {one.title}", ""], one.presentation or Presentation()
    if known.panels:
        lines += [f"![{one.title}]({FIGURES}/{figure_name(exhibit)})", ""]
    if known.cells:
        lines += [f"Printed values: {verdict(known.cells)}.", ""]
    lines += [
        f"* {one.words}: {'holds' if one.holds else 'does not hold'} ({one.source})"
        for one in known.claims
    ]
    lines += [""] * bool(known.claims)
    link = f"[{exhibit.name}](exhibits.md#{_anchor(exhibit)})"
    return "\n".join([*lines, f"Scale {one.wanted.scale.value}; every number: {link}.", ""])


def write_figures(found: Shown, folder: Path) -> list[Path]:
    """The figure of every exhibit that has rows, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for exhibit, one in found:
        if one is not None and one.presentation is not None and one.presentation.panels:
            path = folder / figure_name(exhibit)
            path.write_text(inline_svg(draw(one.presentation.panels)) + "\n", encoding="utf-8")
            paths.append(path)
    return paths


def figure_name(exhibit: Exhibit) -> str:
    """What the figure of an exhibit is called.

    >>> from headwise.papers.rank2026.table_1 import TABLE_1
    >>> figure_name(TABLE_1)
    'rank2026_table_1.svg'
    """
    return exhibit.name.replace("/", "_") + ".svg"


def _overview(found: Shown) -> str:
    rows = []
    for exhibit, one in found:
        link = f"[{exhibit.name}](#{_anchor(exhibit)})"
        known = None if one is None else one.presentation
        if one is None or known is None:
            rows.append((link, exhibit.title, "no rows yet", "", ""))
        else:
            printed = verdict(known.cells) if known.cells else ""
            rows.append((link, one.title, one.wanted.scale.value, printed, claims_held(known)))
    columns = ("exhibit", "what it is", "scale", "printed values", "claims")
    return Table(columns, tuple(rows)).markdown() + "\n"


def _section(exhibit: Exhibit, one: Reproduced | None) -> str:
    # The anchor is set by hand: titles change, and their slugs differ between renderers.
    title = exhibit.title if one is None else one.title
    lines = [f'## {title} <a id="{_anchor(exhibit)}"></a>', "", exhibit.caption, ""]
    if one is None or one.presentation is None:
        scale = Scale.PAPER if Scale.PAPER in exhibit.scales else exhibit.scales[-1]
        lines += ["No rows come with headwise yet.", "", *_command(Wanted(exhibit, scale))]
        return "\n".join(lines)
    known = one.presentation
    if known.panels:
        lines += [f"![{title}]({FIGURES}/{figure_name(exhibit)})", ""]
    lines += [line for remark in known.remarks for line in (remark, "")]
    if known.cells:
        lines += [f"Printed values: {verdict(known.cells)}.", ""]
        lines += _folded(comparison_table(known.cells))
    for table in (*claims_table(known), *known.tables):
        lines += [f"**{table.title}**", "", table.markdown(), ""]
    lines += [f"Computed with {'; '.join(one.sources)}.", ""]
    return "\n".join([*lines, *_command(one.wanted)])


def _folded(table: Table) -> list[str]:
    """A long table that opens on a click."""
    return [
        "<details markdown><summary>Every cell</summary>",
        "",
        table.markdown(),
        "",
        "</details>",
        "",
    ]


def _command(wanted: Wanted) -> list[str]:
    return ["```sh", wanted.command, "```", ""]


def _anchor(exhibit: Exhibit) -> str:
    return exhibit.name.replace("/", "-")
