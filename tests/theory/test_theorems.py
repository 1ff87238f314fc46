"""Simulations meet hypothesis and conclusion, violators break both, and the page says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import make_theorems
from headwise.spectra import Estimate
from headwise.theory.statements.statement import Sense, Source, at_least, at_most, equal
from headwise.theory.theorems import STATEMENTS

PAGE = Path(__file__).parents[2] / "docs" / "theorems.md"

by_label = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.slug)


@by_label
def test_the_simulation_meets_hypothesis_and_conclusion(statement):
    seen = statement.simulate(1)
    assert [check for check in (*seen.hypothesis, *seen.conclusion) if not check.holds] == []


@by_label
def test_the_violator_breaks_hypothesis_and_conclusion(statement):
    planted = statement.violate(1)
    assert not planted.meets_hypothesis
    assert not planted.meets_conclusion


@by_label
def test_simulation_and_violator_are_measured_the_same_way(statement):
    """The same evidence with other arguments, so no check can be decided by what was asked."""
    assert statement.meets.keys() == statement.breaks.keys()
    assert statement.meets != statement.breaks


def test_labels_are_unique():
    assert len({statement.slug for statement in STATEMENTS}) == len(STATEMENTS)


def test_every_numbered_statement_of_the_rank_paper_is_there():
    labels = [one.label for one in STATEMENTS if one.source is Source.RANK_PAPER]
    numbered = [f"Lemma {k}" for k in range(1, 7)] + ["Theorem 1", "Theorem 2", "Proposition 1"]
    # Remark 4 recommends an architecture and states nothing to check.
    for name in [*numbered, *(f"Remark {k}" for k in (1, 2, 3, 5))]:
        assert any(label.startswith(name) for label in labels), name


def test_the_errors_in_print_are_findings():
    findings = {one.label for one in STATEMENTS if one.finding}
    assert {"Lemma 2", "Lemma 6", "Theorem 1, barrier"} <= findings


def test_the_allowance_is_four_standard_errors_on_each_side():
    noisy = Estimate(1.39, 0.1, 9), Estimate(1.41, 0.1, 9)
    assert [at_most("x", seen, 1.0).holds for seen in noisy] == [True, False]
    assert [equal("x", seen, 1.0).holds for seen in noisy] == [True, False]
    assert [equal("x", seen, 1.8).holds for seen in noisy] == [False, True]
    assert at_least("x", noisy[1], 1.8).holds
    assert not replace(at_most("x", 2.0, 1.0), sense=Sense.EQUAL).holds


def test_the_documentation_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == make_theorems.page()
