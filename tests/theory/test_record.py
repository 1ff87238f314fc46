"""The committed record of the full runs says what the documentation says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwise.theory.expected import LAW_ERROR
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law_formula import law_share
from headwise.theory.softening import ERROR_INSIDE, ERROR_OUTSIDE

RECORD = Path(__file__).parents[2] / "benchmarks" / "records" / "law_cpu_202611.json"


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def test_it_covers_the_promised_range_and_says_how_it_was_made(record):
    lengths = {row["length"] for row in record["agreement"]}
    assert lengths == {2**power for power in range(5, 15)}
    assert min(row["head_dim"] for row in record["agreement"]) == 16
    assert {"command", "version", "seed", "dtype", "device"} <= set(record)


def test_the_law_is_a_bound_and_the_corrected_law_is_near(record):
    for row in record["agreement"]:
        assert row["law"] >= row["simulated"] - 3 * row["stderr"]
        assert abs(row["corrected"] - row["simulated"]) <= LAW_ERROR
        if row["length"] >= 256:
            assert row["law"] - row["simulated"] <= 0.006


def test_automatic_answers_are_within_a_hundredth(record):
    for row in record["small_dims"]:
        assert abs(row["predicted"] - row["simulated"]) <= 0.01


def test_softmax_predictions_are_within_their_stated_error(record):
    for row in record["softmax"]:
        stated = ERROR_INSIDE if row["valid"] else ERROR_OUTSIDE
        assert abs(row["predicted"] - row["simulated"]) <= stated


def test_speed_is_as_promised(record):
    assert record["speed"]["one_value_seconds"] <= 0.010
    assert record["speed"]["table_100x100_seconds"] <= 2.0


def test_the_present_code_still_gives_the_recorded_laws(record):
    for row in record["agreement"][::7]:
        assert float(law_share(row["length"], row["head_dim"])) == pytest.approx(row["law"])
        found = corrected_law(row["length"], row["head_dim"])
        assert found == pytest.approx(row["corrected"], rel=1e-9)
