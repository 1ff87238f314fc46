"""The kinds of question about rank, each against a slow way that is plainly right."""

import json
import math

import pytest
import torch
from pydantic import ValidationError

from headwise.errors import BadInputError
from headwise.experiments.check_theorem import CheckTheorem, Label
from headwise.experiments.initial_stack import InitialLayer
from headwise.experiments.kinds import Kinds
from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.orthonormality import Orthonormality, expected_square_cosine
from headwise.experiments.predict_rank import PredictRank
from headwise.experiments.rank_statistics import clustered_error
from headwise.experiments.simulate_rank import SimulateRank
from headwise.runs import parsed_spec, read_specs
from headwise.theory.planar import line_ratio
from headwise.theory.theorems import STATEMENTS


def brute_force_ratios(spec: MeasureRank, number: int = 1) -> torch.Tensor:
    """Every head's attention matrix in full, and its singular values counted."""
    tokens = spec._begin()[0]
    for before in range(1, number):
        tokens = InitialLayer(spec._shape(), spec.seed, before)(tokens)
    layer = InitialLayer(spec._shape(), spec.seed, number)
    r, found = spec.head_dim, []
    for head in range(spec._shape().heads):
        at = slice(head * r, (head + 1) * r)
        scores = (tokens @ layer._reading[0][:, at]) @ (tokens @ layer._reading[1][:, at]).mT
        matrix = torch.softmax(scores / layer.temperature, -1)
        found.append((torch.linalg.svdvals(matrix) >= spec.epsilon).sum(-1).double())
    return torch.stack(found) / spec.tokens


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"inputs": "uniform(-1,1)", "head_dim": 2},
        {"temperature": 1e-3},
        {"weights": "xavier", "norm": "pre"},
        {"shift": 2.0},
        {"heads": 3, "head_dim": 5},
        {"epsilon": 1e-3},
    ],
)
def test_measured_ranks_are_those_of_a_full_decomposition(changed):
    spec = MeasureRank(**{"width": 24, "head_dim": 4, "tokens": 17, "batch": 3} | changed)
    (row,) = spec.ask()
    expected = brute_force_ratios(spec)
    assert row["undecided"] == 0
    assert row["mean"] == pytest.approx(float(expected.mean()), abs=1e-12)
    assert row["std"] == pytest.approx(float(expected.std(correction=0)), abs=1e-12)
    assert row["count"] == expected.numel()
    assert sum(row["methods"].values()) == expected.numel()


def test_deeper_layers_are_measured_where_they_stand():
    spec = MeasureRank(width=16, head_dim=4, tokens=11, batch=2, layers=(3, 1), mlp_width=8)
    rows = spec.ask()
    assert [row["layer"] for row in rows] == [1, 3]
    for row in rows:
        expected = brute_force_ratios(spec, row["layer"])
        assert row["mean"] == pytest.approx(float(expected.mean()), abs=1e-12)


def test_a_head_that_does_not_fit_is_refused():
    with pytest.raises(ValidationError, match="at most the width 8, got 9"):
        MeasureRank(width=8, head_dim=9)


def test_the_clustered_error_against_simulation():
    """Where rows and columns share effects, the stated error is that of the mean."""
    generator = torch.Generator().manual_seed(0)

    def draw(rows, columns, noise):
        shared = torch.randn(6, 1, generator=generator) * rows
        shared = shared + torch.randn(1, 9, generator=generator) * columns
        return (shared + noise * torch.randn(6, 9, generator=generator)).double()

    for effects in ((1.0, 0.5, 0.0), (0.3, 1.0, 0.2), (0.0, 0.0, 1.0)):
        drawn = [draw(*effects) for _ in range(4000)]
        true = float(torch.stack([values.mean() for values in drawn]).var())
        stated = sum(clustered_error(values) ** 2 for values in drawn) / len(drawn)
        # Independent noise alone is counted twice, shared effects once.
        ratio = 2.0 if effects[:2] == (0.0, 0.0) else 1.0
        assert stated == pytest.approx(ratio * true, rel=0.12)
        assert stated > 0.9 * true


def test_one_row_or_one_column_is_judged_by_the_other():
    values = torch.tensor([[0.0, 1.0, 2.0]]).double()
    assert clustered_error(values) == pytest.approx(math.sqrt(1 / 3))
    assert clustered_error(values.T.contiguous()) == pytest.approx(math.sqrt(1 / 3))
    assert clustered_error(values[:, :1]) == 0.0


def test_simulated_rank_on_a_line_is_known():
    row = SimulateRank(tokens=5, head_dim=1, draws=2000).ask()
    assert row["mean"] == pytest.approx(line_ratio(5), abs=4 * row["stderr"])
    assert row["draws"] == 2000


def test_orthonormal_inputs_make_independent_heads():
    settings = {"tokens": 30, "head_dim": 6, "draws": 600}
    plain = SimulateRank(**settings).ask()
    inputs = SimulateRank(**settings, ensemble="orthonormal inputs", width=40).ask()
    noise = math.hypot(plain["stderr"], inputs["stderr"])
    assert inputs["mean"] == pytest.approx(plain["mean"], abs=4 * noise)


def test_inputs_far_from_orthonormal_have_lower_rank():
    settings = {"tokens": 30, "head_dim": 32, "draws": 300, "ensemble": "nearly orthonormal inputs"}
    near, far = (SimulateRank(**settings, width=width).ask() for width in (900, 3))
    assert far["mean"] < near["mean"] - 4 * (near["stderr"] + far["stderr"])


def test_scores_in_float32_choose_the_same_keys():
    one, two = (SimulateRank(tokens=50, head_dim=8, dtype=d).ask() for d in ("float64", "float32"))
    assert one["mean"] == pytest.approx(two["mean"], abs=1e-3)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"width": 9}, "expected no width for independent"),
        ({"ensemble": "orthonormal inputs", "width": 4}, "at least 5 for as many .* got 4"),
    ],
)
def test_simulations_that_cannot_be_drawn_are_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        SimulateRank(tokens=5, head_dim=2, **fields)


def test_orthonormality_by_hand():
    spec = Orthonormality(head_dim=3, tokens=4, batch=5, width=6)
    (vectors,) = spec._vectors()
    found = []
    for item in vectors:
        total = 0.0
        for i in range(4):
            for j in range(4):
                cosine = float(item[i] @ item[j] / (item[i].norm() * item[j].norm()))
                total += (cosine - (i == j)) ** 2
        found.append(math.sqrt(total) / 16)
    row = spec.ask()
    assert row["mean"] == pytest.approx(sum(found) / 5)
    assert row["mean_square"] == pytest.approx(sum(x * x for x in found) / 5)


@pytest.mark.parametrize("width", [None, 1, 2, 3, 40])
@pytest.mark.parametrize("head_dim", [1, 2, 7])
def test_the_expected_square_matches_simulation(head_dim, width):
    row = Orthonormality(head_dim=head_dim, width=width, tokens=12, batch=3000).ask()
    noise = max(4 * row["square_stderr"], 1e-12)
    assert row["mean_square"] == pytest.approx(row["expected_square"], abs=noise)


def test_known_expectations():
    assert expected_square_cosine(2, width=2) == pytest.approx(math.log(2), abs=1e-9)
    assert expected_square_cosine(1, width=5) == pytest.approx(1.0)
    assert Orthonormality(head_dim=2, inputs="uniform(-1,1)").ask()["expected_square"] is None


def test_every_statement_can_be_asked_for():
    from typing import get_args

    assert set(get_args(Label)) == {statement.label for statement in STATEMENTS}


def test_a_broken_statement_is_reported(monkeypatch):
    """A statement whose simulation and violator are exchanged breaks, and lets the other pass."""
    from dataclasses import replace

    from headwise.theory import theorems

    good = next(one for one in STATEMENTS if one.label == "Lemma 3")
    bad = replace(good, meets=good.breaks, breaks=good.meets)
    monkeypatch.setattr(theorems, "STATEMENTS", (bad,))
    row = CheckTheorem(statement="Lemma 3").ask()
    assert not row["holds"]
    assert not row["violator_rejected"]


def test_predictions_are_between_nothing_and_the_barrier():
    for r in (1, 2, 8, 64):
        row = PredictRank(tokens=60, head_dim=r).ask()
        assert 0 < row["ratio"] <= row["law"] + row["error"] <= row["barrier"] + row["error"]


def test_misspelt_fields_and_kinds_are_named(tmp_path):
    with pytest.raises(BadInputError, match=r"'head_dmi' is no field .* 'head_dim'"):
        parsed_spec(Kinds, {"kind": "measure_rank", "head_dmi": 4})
    with pytest.raises(BadInputError, match=r"'mesure_rank' is no kind .* 'measure_rank'"):
        parsed_spec(Kinds, {"kind": "mesure_rank", "head_dim": 4})
    path = tmp_path / "specs.json"
    path.write_text(json.dumps([{"kind": "simulate_rank", "tokens": 4, "head_dim": 2, "drwas": 3}]))
    with pytest.raises(BadInputError, match=r"spec 1 of .*'drwas' is no field .*'draws'"):
        read_specs(Kinds, path)
