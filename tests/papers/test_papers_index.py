"""The index of the papers: nothing numbered is missing or invented, and the page is current."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import headwise
import make_papers_index
from headwise.papers.catalogue import ENTRIES
from headwise.theory.theorems import STATEMENTS, Source

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = Path(headwise.__file__).parent


CONTENTS = make_papers_index.contents()


def test_the_page_is_up_to_date():
    """Run python docs/make_papers_index.py when this fails."""
    assert (DOCS / "papers-index.md").read_text(encoding="utf-8") == make_papers_index.page()


def _names(work: str, kind: str) -> set[str]:
    return {one["name"] for one in CONTENTS if (one["work"], one["kind"]) == (work, kind)}


def test_every_numbered_figure_and_table_of_the_rank_paper_is_listed():
    parts = {2: "abc", 3: "abcd", 4: "ab", 5: "abc", 10: "ab"}
    figures = {f"Figure {k}{part}" for k in range(1, 14) for part in parts.get(k, " ")}
    assert _names("rank paper", "figure") == {name.strip() for name in figures}
    assert _names("rank paper", "table") == {f"Table {k}" for k in (1, 2, 3)}


def test_every_numbered_statement_of_the_rank_paper_is_listed():
    numbered = {"Lemma": 6, "Theorem": 2, "Proposition": 1, "Remark": 5}
    expected = {f"{kind} {k}" for kind, last in numbered.items() for k in range(1, last + 1)}
    listed = _names("rank paper", "statement")
    assert expected <= listed
    assert listed - expected == {"Low-rank bottleneck", "Further perturbation analysis"}


def test_every_equation_of_the_rank_paper_belongs_to_one_entry():
    covered: list[int] = []
    for entry in CONTENTS:
        first, _, last = entry.get("equations", "").partition("-")
        if first:
            covered += range(int(first), int(last or first) + 1)
    assert covered == list(range(1, 73))
    assert all(one < two for one, two in pairwise(covered))


def test_every_statement_that_is_printed_is_listed_under_its_work():
    for statement in STATEMENTS:
        works = {one["work"] for one in CONTENTS if statement.label in one.get("statements", [])}
        if statement.source is not Source.OURS:
            assert works == {statement.source.value}, statement.label


def test_every_exhibit_that_is_printed_is_listed():
    listed = {name for one in CONTENTS for name in one.get("exhibits", [])}
    printed = {entry.name for entry in ENTRIES if entry.load().printed}
    assert printed <= listed


def test_every_entry_points_at_what_exists():
    known = {one.name for one in ENTRIES}
    fields = {"work", "kind", "name", "place", "equations", "says", "statements", "exhibits"}
    for entry in CONTENTS:
        assert set(entry) <= fields | {"code", "absent", "replaced_by"}, entry["name"]
        named = {*entry.get("statements", []), *entry.get("replaced_by", [])}
        assert named <= {one.label for one in STATEMENTS}, entry["name"]
        assert all((PACKAGE / path).exists() for path in entry.get("code", [])), entry["name"]
        here = known & set(entry.get("exhibits", []))
        reasons = (here, entry.get("statements"), entry.get("code"), entry.get("absent"))
        assert any(reasons), entry["name"]
