"""expected_rank gives what each formula gives, and law and bound are built on the same ones."""

from __future__ import annotations

import inspect
import math
import sys
from dataclasses import astuple

import numpy as np
import pytest

import headwise
from headwise.cli.bound import bound as bound_command
from headwise.cli.law import law as law_command
from headwise.errors import MissingExtraError, ParameterError
from headwise.spectra import Estimate
from headwise.theory import bound, expected_rank, law, montecarlo
from headwise.theory.expected import formula_ratio, ready_ratio
from headwise.theory.fluctuation import corrected_law
from headwise.theory.harmonic_bound import Values, error_lower_bound, heads_needed
from headwise.theory.law_formula import barrier_ratio, critical_head_dim, law_share
from headwise.theory.planar import line_ratio, plane_ratio
from headwise.theory.softening import softmax_ratio

SIZES = [(2, 1), (64, 2), (50, 3), (300, 16), (1024, 64), (10**8, 200)]


def core(prediction):
    return astuple(prediction)[:5]


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_auto_is_the_formula_or_a_simulation(n, d, mask):
    found = expected_rank(n, d, mask)
    known = formula_ratio(n, d, mask) or expected_rank(n, d, mask, method="simulation")
    assert core(found) == core(known)
    assert (found.mask, found.attention, found.in_range) == (mask, "hardmax", True)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize(("n", "d"), [*SIZES, (10**9, 8)])
def test_instant_is_ready_ratio_and_upper_bound_is_the_law(n, d, mask):
    assert core(expected_rank(n, d, mask, method="instant")) == core(ready_ratio(n, d, mask))
    bounded = expected_rank(n, d, mask, method="upper bound")
    assert (bounded.ratio, bounded.method) == (float(law_share(n, d, mask)), "upper bound")


def test_law_is_corrected_without_a_mask_and_plain_under_one():
    assert expected_rank(300, 16, method="law").ratio == corrected_law(300, 16)
    causal = expected_rank(300, 16, "causal", method="law").ratio
    assert causal == float(law_share(300, 16, "causal"))


def test_exact_values():
    assert expected_rank(9, 1, method="exact").ratio == line_ratio(9) == 2 * (1 - 2**-9) / 9
    assert expected_rank(9, 2, method="exact").ratio == plane_ratio(9)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_infinite_head_dimension_is_the_barrier(mask):
    found = expected_rank(40, math.inf, mask)
    assert (found.ratio, found.error, found.method) == (barrier_ratio(40, mask), 0.0, "exact")


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_simulation_agrees_with_the_law_where_both_are_known(mask):
    seen, law = (expected_rank(200, 32, mask, method=name) for name in ("simulation", "law"))
    assert (seen.method, law.method) == ("simulation", "law")
    assert seen.ratio != law.ratio
    assert abs(seen.ratio - law.ratio) < seen.error + law.error


@pytest.mark.parametrize(("d", "heat", "valid"), [(64, 1e-9, True), (64, 1.0, False)])
def test_softmax_is_softmax_ratio(d, heat, valid):
    found = expected_rank(256, d, attention="softmax", temperature=heat)
    old = softmax_ratio(256, d, heat)
    assert (found.ratio, found.error, found.in_range) == (old.ratio, old.error, old.valid)
    assert (found.in_range, found.attention) == (valid, "softmax")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "guess"}, "expected `method` 'auto'"),
        ({"attention": "sparsemax"}, "got 'sparsemax'"),
        ({"mask": "window"}, "got 'window'"),
        ({"method": "law"}, "got d_h = 8"),
        ({"method": "exact"}, "got d_h = 8"),
        ({"attention": "softmax"}, "expected a temperature"),
        ({"attention": "softmax", "temperature": 1, "mask": "causal"}, "expected mask 'none'"),
        ({"attention": "softmax", "temperature": 1, "method": "simulation"}, "for softmax"),
    ],
)
def test_wrong_parameters_are_named(parameters, words):
    with pytest.raises(ParameterError, match=words):
        # The tests check annotations, which would refuse a wrong literal first.
        inspect.unwrap(expected_rank)(100, 8, **parameters)


def test_the_barrier_has_no_simulation():
    with pytest.raises(ParameterError, match="d_h = ∞"):
        expected_rank(100, math.inf, method="simulation")


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_law_holds_instant_predictions_around_the_critical_head_dimension(mask):
    found = law(256, mask=mask)
    assert found.critical_head_dim == critical_head_dim(256, 0.9, mask)
    assert found.critical_head_dim in [row.head_dim for row in found.rows]
    assert found.barrier == barrier_ratio(256, mask)
    for row in found.rows:
        assert core(row) == core(ready_ratio(256, row.head_dim, mask))


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("length", [3, 4, 6, 10, 20, 32, 50])
def test_in_few_dimensions_the_critical_one_reaches_the_share_that_is_shown(length, mask):
    found = law(length, mask=mask)
    shown = {row.head_dim: row.ratio / found.barrier for row in found.rows}
    assert shown[found.critical_head_dim] >= 0.9
    assert all(share < 0.9 for dim, share in shown.items() if dim < found.critical_head_dim)


def test_law_simulates_only_head_dimensions_that_were_asked_for(monkeypatch):
    monkeypatch.setattr(montecarlo, "simulate_head", lambda *_: Estimate(0.1, 0.003, 100))
    assert [row.method for row in law(2**15, 8, "causal").rows] == ["simulation"]
    assert {row.method for row in law(2**15, mask="causal").rows} == {"upper bound", "law"}
    with pytest.raises(ParameterError, match="empty list"):
        law(100, [])


@pytest.mark.parametrize("several", [(16, 64), {64, 16}, np.array([16, 64]), range(16, 65, 48)])
def test_law_takes_head_dimensions_in_any_collection(several):
    found = law(256, several)
    assert found.as_json()["head_dim"] == [16, 64]
    assert not found.scalar


def test_law_draws_the_whole_curve_and_marks_what_was_asked_for():
    whole = law(256).plot().axes[0].lines[0].get_xdata()
    marked, curve, *_ = law(256, 24).plot().axes[0].lines
    assert list(marked.get_xdata()) == [24]
    assert list(curve.get_xdata()) == list(whole)


@pytest.mark.parametrize("values", ["any", "identity"])
def test_bound_is_one_of_two_formulas(values):
    kind = Values(values)
    assert bound(64, 8, heads=8, values=values).error == error_lower_bound(64, 8, 8, kind)
    assert bound(64, 8, error=0.1, values=kind).heads == heads_needed(64, 8, 0.1, kind)
    with pytest.raises(ParameterError, match="got 'odd'"):
        inspect.unwrap(bound)(64, 8, heads=8, values="odd")


def test_bound_curve_passes_through_its_answer():
    heads, bounds = bound(64, 8, heads=8).curve()
    assert bounds == sorted(bounds, reverse=True)
    assert (heads[0], bounds[0]) == (1, error_lower_bound(64, 8, 1))
    assert heads[-1] == pytest.approx(80)
    assert bounds[-1] == pytest.approx(error_lower_bound(64, 8, 80), abs=1e-12)


ANSWERS = [law(10**12, [1, 64]), bound(10**6, 1, error=0.1), bound(64, 8, heads=8)]


@pytest.mark.parametrize("answer", ANSWERS, ids=["law", "heads", "error"])
def test_answers_are_short_and_can_be_drawn(answer, tmp_path):
    assert len(repr(answer)) < 300
    file = tmp_path / "figure.svg"
    assert answer.plot(file).axes
    assert file.stat().st_size > 1000


@pytest.mark.parametrize("answer", ANSWERS, ids=["law", "heads", "error"])
def test_without_pandas_to_frame_says_how_to_install_it(answer, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pandas"):
        answer.to_frame()


def test_frames_have_one_row_for_each_point():
    pytest.importorskip("pandas")
    frame = law(256, [16, 64]).to_frame()
    assert list(frame.head_dim) == [16, 64]
    frame = bound(64, 16, heads=4).to_frame()
    assert all(isinstance(heads, int) for heads in frame.heads.tolist())
    (answer,) = frame[frame.answer].to_dict("records")
    assert answer["heads"] == 4
    assert answer["error_lower_bound"] == pytest.approx(bound(64, 16, heads=4).error)
    assert list(frame.heads) == sorted(set(frame.heads)) and max(frame.heads) == 40


@pytest.mark.parametrize(
    ("command", "function"), [(law_command, headwise.law), (bound_command, headwise.bound)]
)
def test_commands_have_the_parameters_of_the_functions(command, function):
    shown = set(inspect.signature(command).parameters) - {"plot", "as_json"}
    assert shown == set(inspect.signature(function).parameters) - {"progress"}
