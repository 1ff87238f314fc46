"""Write the figures of "Rank or heads?" and its part on what was recorded.

python docs/make_rank_or_heads.py draws every exhibit of the heads paper of which rows come with
headwise, at the largest recorded scale, into docs/figures/heads2024/, and puts the figures with
their verdicts between the marks in docs/rank-or-heads.md.
"""

from __future__ import annotations

from pathlib import Path

from headwise.papers.comparison import verdict
from headwise.papers.exhibit import Exhibit
from headwise.papers.heads2024 import HEADS_2024
from headwise.papers.reproduction import from_records, largest_recorded
from headwise.report import draw, save_figure

DOCS = Path(__file__).parent
PAGE = DOCS / "rank-or-heads.md"
FIGURES = DOCS / "figures" / "heads2024"
BEGIN, END = "<!-- recorded -->", "<!-- end of recorded -->"

#: Tables with more rows than this are left to the report.
SHORT = 20


def section(exhibit: Exhibit) -> str:
    """An exhibit as Markdown; nothing if no rows of it are recorded."""
    wanted = largest_recorded(exhibit)
    if wanted is None:
        return ""
    found = from_records(wanted)
    assert found.presentation is not None
    shown = found.presentation
    parts = [f"### {exhibit.title}", exhibit.caption]
    if shown.panels:
        path = FIGURES / exhibit.name.rpartition("/")[2]
        save_figure(draw(shown.panels), path)
        # The other formats are for papers, not for a page.
        path.with_suffix(".pdf").unlink()
        path.with_suffix(".svg").unlink()
        parts.append(f"![{exhibit.title}](figures/heads2024/{path.name}.png)")
    parts += shown.remarks
    parts += [f"* {words}: {'holds' if seen else 'does not hold'}" for words, seen in shown.claims]
    parts += [table.markdown() for table in shown.tables if len(table.rows) <= SHORT]
    if shown.cells:
        parts.append(f"Printed values: {verdict(shown.cells)}.")
    parts.append(f"Scale {wanted.scale.value}; headwise reproduce {exhibit.name} --from-records.")
    return "\n\n".join(parts)


def main() -> None:
    """Draw, and fill the page."""
    sections = [text for exhibit in HEADS_2024 if (text := section(exhibit))]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = "\n\n".join(sections) or "Nothing is recorded yet."
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    print(f"{len(sections)} of {len(HEADS_2024)} exhibits recorded and drawn")


if __name__ == "__main__":
    main()
