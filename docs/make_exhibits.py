"""Write exhibits.md with its figures, two other pages, and part of rank-or-heads.md.

python docs/make_exhibits.py measures and trains nothing: it takes the rows that come with headwise.
New rows are put there by benchmarks/record_exhibits.py.
"""

from __future__ import annotations

from pathlib import Path

import make_papers_index

from headwise.papers.catalogue import CATALOGUE
from headwise.papers.gallery import FIGURES, gallery_page, shown, story_part, write_figures
from headwise.papers.rank2026.verdict_page import verdict_page

HERE = Path(__file__).parent
STORY = HERE / "rank-or-heads.md"
BEGIN, END = "<!-- recorded -->", "<!-- end of recorded -->"


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
    (HERE / "rank-and-accuracy.md").write_text(verdict_page(), encoding="utf-8")
    make_papers_index.main()


if __name__ == "__main__":
    main()
