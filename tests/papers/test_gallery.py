"""The gallery page: up to date, and made of recorded rows alone."""

import re
from pathlib import Path

import pytest

import make_verdict
from headwise.papers import catalogue, recorded
from headwise.papers.catalogue import CATALOGUE, chosen
from headwise.papers.exhibit import Scale
from headwise.papers.reproduction import Wanted
from headwise.runs import Records
from headwise.runs.attempt import attempt
from headwise.runs.record import Record
from make_exhibits import (
    FIGURES,
    figure_name,
    gallery_page,
    shown,
    story_part,
    write_figures,
)

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date():
    """Run python docs/make_exhibits.py when this fails."""
    found = shown(CATALOGUE)
    assert (DOCS / "exhibits.md").read_text(encoding="utf-8") == gallery_page(found)
    drawn = {path.name for path in (DOCS / FIGURES).glob("*.svg")}
    # A table has no figure.
    assert drawn == {
        figure_name(exhibit) for exhibit, those in found if any(one.shown.panels for one in those)
    }


def test_readme_and_first_page_have_the_counts():
    """Change the words there when this fails."""
    page = (DOCS / "exhibits.md").read_text(encoding="utf-8")
    rows = {
        name: counts
        for name, *counts in re.findall(r"^\| (.*) \| (.*) \| (.*) \| .* \|$", page, re.M)
    }
    words = (
        f"{rows['rank paper'][0]} published values of the rank paper agree, and "
        f"{rows['heads paper, most with shorter schedules'][0]} of the heads paper (most with "
        f"shorter schedules). {rows['all'][1]} published claims hold"
    )
    assert words in (DOCS / "index.md").read_text(encoding="utf-8")
    assert words in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_readme_and_first_page_have_the_verdict_on_accuracy():
    """Change the word there when this fails."""
    verdict = (DOCS / "rank-and-accuracy.md").read_text(encoding="utf-8")
    word = verdict.partition("## The answer\n\n**")[2].partition(".**")[0]
    asked = "Does the rank before training predict accuracy? |"
    assert f"{asked} {word}: [" in (DOCS / "index.md").read_text(encoding="utf-8")
    assert f"{asked} [{word}](" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_story_of_the_heads_paper_is_up_to_date():
    """Run python docs/make_exhibits.py when this fails."""
    page = (DOCS / "rank-or-heads.md").read_text(encoding="utf-8")
    told = page.partition("<!-- recorded -->")[2].partition("<!-- end of recorded -->")[0]
    assert told.strip() == story_part(shown(chosen(["heads2024"]))).strip()


def test_the_verdict_on_rank_and_accuracy_is_up_to_date():
    """Run python docs/make_exhibits.py when this fails."""
    assert (DOCS / "rank-and-accuracy.md").read_text(encoding="utf-8") == make_verdict.page()


@pytest.fixture
def with_rows(tmp_path, monkeypatch):
    """One exhibit in miniature, recorded in its own folder."""
    monkeypatch.setattr(catalogue, "RECORDS", tmp_path / "records")
    (exhibit,) = chosen(["rank2026/figure_6"])
    specs = exhibit.specs(Scale.MINIATURE)
    outcomes = [attempt(spec) for spec in specs]
    answers = Records(
        Record(spec.key, spec.content, one.rows, one.provenance)
        for spec, one in zip(specs, outcomes, strict=True)
    )
    return exhibit, recorded.record(exhibit, Scale.MINIATURE, answers)


def test_recorded_rows_become_a_section_with_figure(with_rows, tmp_path):
    exhibit, path = with_rows
    assert path.name == "figure_6_miniature.csv"
    assert recorded.recorded_scales(exhibit) == (Scale.MINIATURE,)
    page = gallery_page(shown([exhibit]))
    assert f"]({FIGURES}/rank2026_figure_6.svg)" in page
    assert "|  | 3 of 3 hold |" in page  # no published claims, three of ours
    (figure,) = write_figures(shown([exhibit]), tmp_path / "figures")
    assert figure.read_text().startswith("<svg")
    assert figure.stat().st_size < 150_000


def test_an_exhibit_without_rows_is_named_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "RECORDS", tmp_path)
    page = gallery_page(shown(chosen(["rank2026/table_2"])))
    assert "no rows yet" in page
    assert "headwise reproduce rank2026/table_2 --scale paper" in page
    assert write_figures(shown(chosen(["rank2026/table_2"])), tmp_path / "figures") == []


def test_rows_of_an_accelerator_are_named_with_its_command():
    (exhibit,) = chosen(["beyond/finite_law"])
    page = gallery_page(shown([exhibit]))
    assert "headwise reproduce beyond/finite_law --scale gpu --device cuda\n" in page
    assert "--device" not in Wanted(exhibit, Scale.LAPTOP).command
