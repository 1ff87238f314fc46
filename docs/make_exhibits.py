"""Write docs/exhibits.md and its figures from the rows that come with headwise.

python docs/make_exhibits.py [STORE]: with a store, every exhibit that it holds whole is recorded
first, at the largest scale it holds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headwise.papers.catalogue import CATALOGUE
from headwise.papers.gallery import FIGURES, gallery_page, write_figures
from headwise.papers.recorded import record
from headwise.papers.reproduction import largest_stored
from headwise.runs import Store

HERE = Path(__file__).parent


def record_from(place: str) -> None:
    """Take over what a store holds; a miniature is no record."""
    with Store.open(place) as store:
        for exhibit in CATALOGUE:
            wanted = largest_stored(store, exhibit)
            if wanted is not None and wanted.scale is not exhibit.scales[0]:
                print(record(exhibit, wanted.scale, store.records_of(wanted.specs())))


def main() -> None:
    """Record what is named, then write page and figures."""
    for place in sys.argv[1:]:
        record_from(place)
    write_figures(CATALOGUE, HERE / FIGURES)
    (HERE / "exhibits.md").write_text(gallery_page(CATALOGUE), encoding="utf-8")


if __name__ == "__main__":
    main()
