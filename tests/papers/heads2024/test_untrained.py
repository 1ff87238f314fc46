"""Exhibits of the heads paper that need no training, in miniature."""

import pytest

from headwise.experiments.bound_heads import BoundHeads
from headwise.papers.exhibit import Scale
from headwise.papers.heads2024.table_models import few_and_low, heads_of
from headwise.papers.reproduction import Wanted, from_records
from headwise.runs import Record, Records
from headwise.runs.attempt import attempt
from headwise.theory.harmonic_bound import Values, error_lower_bound
from papers.heads2024.inventing import (
    FIGURE_CONSTRUCTION,
    FIGURE_LOWER_BOUND,
    FIGURE_MAJORITY_VOTE,
    TABLE_MODELS,
)


def shown(exhibit, scale=Scale.MINIATURE):
    records = []
    for spec in exhibit.specs(scale):
        outcome = attempt(spec)
        records.append(Record(spec.key, spec.content, outcome.rows, outcome.provenance))
    return exhibit.presented(Records(records), scale)


@pytest.mark.parametrize("exhibit", [FIGURE_MAJORITY_VOTE, FIGURE_CONSTRUCTION])
def test_every_claim_holds(exhibit):
    found = shown(exhibit)
    assert found.claims
    assert all(claim.holds for claim in found.claims)
    assert all(len(curve.mean) > 1 for panel in found.panels for curve in panel.curves)


def test_lines_of_the_bound_run_from_few_heads_to_many():
    found = shown(FIGURE_LOWER_BOUND)
    for panel in found.panels:
        for curve in panel.curves:
            assert list(curve.law.x) == sorted(set(curve.law.x))
            assert list(curve.law.y) == sorted(curve.law.y, reverse=True)
    bounds, random, trained = found.panels
    # More kinds of value matrices can only lower the least error.
    assert all(a <= b for c in bounds.curves for a, b in zip(c.mean.y, c.law.y, strict=True))
    for panel in (random, trained):
        assert all(a >= b for c in panel.curves for a, b in zip(c.mean.y, c.law.y, strict=True))
    # That the bound is tight is the talk's guess; it is judged, not required.
    assert all(claim.holds for claim in found.claims if not claim.printed)
    assert ["tight" in claim.words for claim in found.claims if claim.printed] == [True]


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_no_question_is_asked_twice(scale):
    keys = [spec.key for spec in FIGURE_LOWER_BOUND.specs(scale)]
    assert len(keys) == len(set(keys))


def test_heads_are_counted_as_the_bound_counts_them():
    found = shown(FIGURE_LOWER_BOUND)
    (table,) = found.tables
    assert all("error 0.1" in column for column in table.columns[2:])
    for d, r, *told in table.rows:
        for values, words in zip((Values.ANY, Values.IDENTITY), told, strict=True):
            if words is None:
                continue
            heads = int(words.replace(",", ""))
            assert error_lower_bound(d, r, heads, values) <= 0.1
            assert heads == 1 or error_lower_bound(d, r, heads - 1, values) > 0.1


def test_recorded_heads_of_rank_32_are_twelve():
    presentation = from_records(Wanted(FIGURE_LOWER_BOUND, Scale.GPU)).presentation
    assert presentation is not None
    assert (64, 32, "12", "23") in presentation.tables[0].rows
    assert "0.1463 at r = 32" in presentation.remarks[0]


def test_a_vote_of_two_layers_is_outside_the_bound_of_one():
    """By the recorded rows it goes below it, which no single layer of as many heads can."""
    presentation = from_records(Wanted(FIGURE_MAJORITY_VOTE, Scale.PAPER)).presentation
    told = presentation.remarks[1]
    assert "In 4 of 24 settings the vote is below the bound" in told
    assert "d = 16, H = 4,001: 0.060 and 0.092;" in told
    assert not any("One layer of random" in remark for remark in presentation.remarks)


def test_the_survey():
    table = shown(TABLE_MODELS).tables[0]
    assert len(table.rows) == 13
    heads = {row[0]: row[5] for row in table.rows}
    assert heads["PaLM"] == "2d/3r = 48"
    assert heads["GPT-3"] == "d/r = 96"
    assert all(0.17 < row[6] < 0.19 for row in table.rows)


@pytest.mark.parametrize(
    ("rank", "heads", "holds"),
    [(64, 8, True), (128, 511, True), (64, 512, False), (129, 4, False)],
)
def test_the_survey_claims_few_heads_and_low_rank(rank, heads, holds):
    standard = BoundHeads(width=512, rank=64, heads=8)
    assert few_and_low([standard, BoundHeads(width=512, rank=rank, heads=heads)]) is holds


def test_a_formula_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no multiple of d/r"):
        heads_of("4d", 512, 64)
