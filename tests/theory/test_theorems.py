"""No simulation violates a statement, every violator is caught, and the page says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwise.spectra import Estimate
from headwise.theory.statements.statement import Evidence, Sense, Statement
from headwise.theory.theorems import STATEMENTS, index_page

PAGE = Path(__file__).parents[2] / "docs" / "theorems.md"

by_label = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.label)


@by_label
@pytest.mark.parametrize("seed", [1, 2])
def test_no_simulation_violates_it(statement, seed):
    verdict = statement.check(statement.simulate(seed))
    assert verdict.accepted, f"{verdict.observed} against {verdict.bound}"
    assert 0 <= verdict.closeness <= 1


@by_label
@pytest.mark.parametrize("seed", [1, 2])
def test_its_violator_is_rejected(statement, seed):
    assert not statement.check(statement.violate(seed)).accepted


@by_label
def test_evidence_turned_round_is_rejected(statement):
    """The check looks at the sense: the violator passes when the inequality is reversed."""
    other = Sense.AT_LEAST if statement.sense is Sense.AT_MOST else Sense.AT_MOST
    assert replace(statement, sense=other).check(statement.violate(1)).accepted


def test_labels_are_unique():
    assert len({statement.label for statement in STATEMENTS}) == len(STATEMENTS)


def test_every_numbered_statement_of_the_rank_paper_is_there():
    labels = {statement.label for statement in STATEMENTS}
    assert {f"Lemma {number}" for number in range(1, 7)} <= labels
    assert {"Theorem 1", "Theorem 2", "Proposition 1", "Remark 3"} <= labels


def test_the_allowance_is_four_standard_errors():
    def never(seed: int) -> Evidence:
        raise AssertionError(seed)

    one = Statement("x", "x", "x", float, Sense.AT_MOST, never, never)
    assert one.check(Evidence(Estimate(1.39, 0.1, 9), (1.0,))).accepted
    assert not one.check(Evidence(Estimate(1.41, 0.1, 9), (1.0,))).accepted


def test_the_documentation_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == index_page()
