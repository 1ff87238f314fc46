"""Write exhibits.md with its figures, two other pages, and part of rank-or-heads.md.

python docs/make_exhibits.py measures and trains nothing: it takes the rows that come with headwise.
New rows are put there by benchmarks/record_exhibits.py. An exhibit without rows is named with its
command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import make_papers_index
import make_verdict
from headwise.papers.catalogue import CATALOGUE
from headwise.papers.comparison import RULE, comparison_table, verdict
from headwise.papers.exhibit import Exhibit, Scale
from headwise.papers.pages import claims_table, figures_of, held, summary_table, values_words
from headwise.papers.reproduction import Reproduced, Wanted, best_recorded
from headwise.report import Table, draw, inline_svg

HERE = Path(__file__).parent
STORY = HERE / "rank-or-heads.md"
BEGIN, END = "<!-- recorded -->", "<!-- end of recorded -->"

#: Where the page finds the figures, seen from itself.
FIGURES = "figures/exhibits"

_HEAD = f"""# Exhibits

Figures and tables of the two papers, and some of our own, recomputed. The second table says for
each what agrees with the paper. `python docs/make_exhibits.py` writes this page from rows that
come with headwise.

{RULE}

When each part of this rule was fixed:

| part | fixed |
|:--|:--|
| max(0.015, 3 combined standard errors) | before anything was run |
| losses within a fifth; undecided cells | with the trained figures; both make agreement harder |
| choices from a grid | with the critical head dimensions of Table 1 |

Claims are statements in words, judged from the rows. Each names its source: the place in the
paper, or "ours".

[Reproduce an exhibit](how-to/reproduce.md) shows how to compute them yourself.
"""

#: The folders of exhibits, in words.
_FOLDERS = (
    ("rank2026/", "rank paper"),
    ("heads2024/", "heads paper, most with shorter schedules"),
    ("beyond/", "ours"),
)

#: The exhibits of the heads paper whose figures rank-or-heads.md shows.
TOLD = (
    "heads2024/figure_rank_depth",
    "heads2024/figure_saturation",
    "heads2024/figure_lower_bound",
    "heads2024/figure_majority_vote",
)

#: Exhibits with what their recorded rows show.
Shown = Sequence[tuple[Exhibit, list[Reproduced]]]


def shown(exhibits: Sequence[Exhibit]) -> Shown:
    """Return each exhibit with its recorded rows: the largest whole scale, and larger parts."""
    return [(exhibit, best_recorded(exhibit)) for exhibit in exhibits]


def gallery_page(found: Shown) -> str:
    """Return the page: a table of all exhibits, then a section for each."""
    parts = [
        _HEAD,
        _totals(found),
        _overview(found),
        *(_section(exhibit, those) for exhibit, those in found),
    ]
    return "\n".join(parts)


def story_part(found: Shown) -> str:
    """Return, for a page that tells a story, the figures that it shows, and links to the others."""
    parts = [_told(exhibit, those) for exhibit, those in found if exhibit.name in TOLD and those]
    others = [(exhibit, those) for exhibit, those in found if exhibit.name not in TOLD and those]
    return "\n".join([*parts, *([_others(others)] if others else [])])


def write_figures(found: Shown, folder: Path) -> list[Path]:
    """Write the figure of every exhibit that has rows, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for exhibit, those in found:
        for panels in figures_of(those).values():
            path = folder / figure_name(exhibit)
            path.write_text(inline_svg(draw(panels)) + "\n", encoding="utf-8")
            paths.append(path)
    return paths


def figure_name(exhibit: Exhibit) -> str:
    """Return the file name of an exhibit's figure."""
    return exhibit.name.replace("/", "_") + ".svg"


def _told(exhibit: Exhibit, those: list[Reproduced]) -> str:
    lines = [f"### {those[0].title}", "", *_figure(exhibit, those), exhibit.caption, ""]
    for one in those:
        lines += [f"#### {_scale_words(one)}", ""] if len(those) > 1 else []
        lines += [line for words in values_words(one.shown) for line in (words, "")]
        lines += [
            f"* {claim.words}: {'holds' if claim.holds else 'does not hold'} ({claim.source})"
            for claim in one.shown.claims
        ]
        lines += [""] * bool(one.shown.claims)
    scale = f"Scale {those[0].wanted.scale.value}; every" if len(those) == 1 else "Every"
    link = f"[{exhibit.name}](exhibits.md#{_anchor(exhibit)})"
    return "\n".join([*lines, f"{scale} number: {link}.", ""])


def _scale_words(one: Reproduced) -> str:
    """Name a scale, with the settings that are recorded of it if these are a part."""
    settings = dict.fromkeys(cell.name.rpartition(", ")[0] for cell in one.shown.cells)
    words = "; ".join(settings) if one.problem else "shortened schedules"
    return f"Scale {one.wanted.scale.value} ({words})"


def _others(found: Shown) -> str:
    """A table of exhibits that the page does not show."""
    rows = [
        (
            f"[{those[0].title}](exhibits.md#{_anchor(exhibit)})",
            one.wanted.scale.value,
            verdict(one.shown.cells, one.why_uncompared),
            held(one.shown.claims_by(printed=True)),
            held(one.shown.claims_by(printed=False)),
        )
        for exhibit, those in found
        for one in those
    ]
    columns = ("exhibit", "scale", "published values", "published claims", "our claims")
    return f"### Other exhibits\n\n{Table(columns, tuple(rows)).markdown()}\n"


def counts(found: Shown) -> tuple[str, str, str]:
    """Count published values that agree, published claims that hold, and ours, as "74 of 194"."""
    presented = [one.shown for _, those in found for one in those]
    agreed = [cell.agrees for shown in presented for cell in shown.cells]
    held = {
        printed: [claim.holds for shown in presented for claim in shown.claims_by(printed=printed)]
        for printed in (True, False)
    }
    return _of(agreed) or "none published", _of(held[True]) or "none published", _of(held[False])


def _of(outcomes: Sequence[bool]) -> str:
    return f"{sum(outcomes)} of {len(outcomes)}" if outcomes else ""


def _totals(found: Shown) -> str:
    """The counts by folder, and of all."""
    groups = {
        words: [one for one in found if one[0].name.startswith(folder)]
        for folder, words in _FOLDERS
    }
    rows = [(words, *counts(own)) for words, own in [*groups.items(), ("all", found)] if own]
    return (
        Table(
            ("exhibits", "published values that agree", "published claims that hold", "our claims"),
            tuple(rows),
        ).markdown()
        + "\n"
    )


def _overview(found: Shown) -> str:
    rows: list[tuple[str, ...]] = []
    for exhibit, those in found:
        link = f"[{exhibit.name}](#{_anchor(exhibit)})"
        if not those:
            rows.append((link, exhibit.source, "no rows yet", "", "", "", ""))
        for line in summary_table(those).rows:
            rows.append((link, *map(str, line[1:])))
    return Table(summary_table([]).columns, tuple(rows)).markdown() + "\n"


def _section(exhibit: Exhibit, those: list[Reproduced]) -> str:
    # The anchor is set by hand: titles change, and their slugs differ between renderers.
    title = those[0].title if those else exhibit.title
    source = f"Published as {exhibit.printed}." if exhibit.printed else "Ours; in neither paper."
    lines = [f'## {title} <a id="{_anchor(exhibit)}"></a>', "", source, "", exhibit.caption, ""]
    if not those:
        scale = Scale.PAPER if Scale.PAPER in exhibit.scales else exhibit.scales[-1]
        lines += ["No rows come with headwise yet.", "", *_command(Wanted(exhibit, scale))]
        return "\n".join(lines)
    lines += _figure(exhibit, those)
    for one in those:
        lines += [f"**At scale {one.wanted.scale.value}**", ""] if len(those) > 1 else []
        lines += _numbers(one)
    return "\n".join(lines)


def _numbers(one: Reproduced) -> list[str]:
    known = one.shown
    lines = [line for remark in (*known.remarks, *values_words(known)) for line in (remark, "")]
    if known.cells:
        lines += _folded(comparison_table(known.cells))
    for table in (*claims_table(known), *known.tables):
        lines += [f"**{table.title}**", "", table.markdown(), ""]
    return [*lines, f"Computed with {'; '.join(one.sources)}.", "", *_command(one.wanted)]


def _figure(exhibit: Exhibit, those: list[Reproduced]) -> list[str]:
    if not any(one.shown.panels for one in those):
        return []
    return [f"![{those[0].title}]({FIGURES}/{figure_name(exhibit)})", ""]


def _folded(table: Table) -> list[str]:
    """A long table that opens on a click."""
    opening = "<details markdown><summary>Every cell</summary>"
    return [opening, "", table.markdown(), "", "</details>", ""]


def _command(wanted: Wanted) -> list[str]:
    return ["```sh", wanted.command, "```", ""]


def _anchor(exhibit: Exhibit) -> str:
    return exhibit.name.replace("/", "-")


def told_again(page: str, part: str) -> str:
    """The page with this part between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{part}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Draw, and write the pages."""
    found = shown(CATALOGUE)
    write_figures(found, HERE / FIGURES)
    (HERE / "exhibits.md").write_text(gallery_page(found), encoding="utf-8")
    heads = [(exhibit, one) for exhibit, one in found if exhibit.name.startswith("heads2024/")]
    page = STORY.read_text(encoding="utf-8")
    STORY.write_text(told_again(page, story_part(heads)), encoding="utf-8")
    make_verdict.main()
    make_papers_index.main()


if __name__ == "__main__":
    main()
