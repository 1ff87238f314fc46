"""Constructed layers: one full-rank head is exact, d soft rank-one heads can tally."""

from __future__ import annotations

from headwise.experiments.construction import Construction
from headwise.experiments.majority_vote import MajorityVote
from headwise.papers.exhibit import Answers, Claim, Exhibit, Scale, grid, grouped
from headwise.papers.kinds.check import Check, RowPanel
from headwise.runs import Spec

HEATS = (0.1, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0)
TEMPERATURES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SOFT = {"layer": "softmax"}


def _paper() -> list[Spec]:
    return [
        *grid(Construction, {"layer": "hardmax", "width": 64}, tokens=(2, 16, 64, 256)),
        *grid(Construction, SOFT | {"width": 64}, tokens=(2, 16, 64), heat=TEMPERATURES),
        *grid(Construction, {"layer": "tally", "samples": 20000}, width=(16, 64), heat=HEATS),
        *grid(MajorityVote, {"layers": 40, "samples": 200}, width=(16, 64), heads=(1, 21, 401)),
    ]


def _miniature() -> list[Spec]:
    few = {"samples": 500}
    return [
        *grid(Construction, few | {"layer": "hardmax", "width": 8}, tokens=(2, 16)),
        *grid(Construction, few | SOFT | {"width": 8}, tokens=(2, 16), heat=(1e-3, 1.0)),
        *grid(Construction, few | {"layer": "tally"}, width=(8,), heat=(0.1, 10.0, 1000.0)),
        *grid(MajorityVote, {"layers": 10, "samples": 100}, width=(8,), heads=(1, 21)),
    ]


def _claims(answers: Answers) -> tuple[Claim, ...]:
    exact, tallied = answers.rows(layer="hardmax"), answers.rows(layer="tally")
    return (
        Claim(
            f"one full-rank hardmax head is exact for {len(exact)} values of N",
            all(row["error"] == 0 for row in exact),
            "the authors' talk, upper bound",
        ),
        Claim(
            "d rank-one softmax heads with a threshold are exact for two points as τ → 0",
            all(row["error"] == 0 for row in tallied if row["heat"] <= 0.1),
        ),
        Claim(
            "two rank-one layers come nearer with more heads",
            _falling(answers),
            "the authors' talk, on the construction with two layers",
        ),
    )


def _falling(answers: Answers) -> bool:
    by_width = grouped(answers.rows(kind="majority_vote"), "width").values()
    found = [[row["simulated"] for row in own] for own in by_width]
    return all(errors == sorted(errors, reverse=True) for errors in found)


_LARGE = (
    "At large τ the rank-one heads decide hard, coordinate by coordinate, and the tally becomes a "
    "majority vote of the d coordinates: the error rises towards that of a vote."
)

_ERROR = ("error", "mean squared error")

CHECK = Check(
    panels=(
        RowPanel(
            "One full-rank head: the colder the better",
            ("heat", "temperature"),
            _ERROR,
            ("tokens", "N = {}"),
            where=SOFT,
            y_scale="log",
        ),
        RowPanel(
            "Soft rank-one heads tally, hard ones vote",
            ("heat", "τ, factor of the logits"),
            _ERROR,
            ("width", "d = H = {}"),
            where={"layer": "tally"},
            decades=True,
        ),
        RowPanel(
            "Two rank-one layers: vote, then look up",
            ("heads", "heads"),
            ("simulated", "mean squared error"),
            ("width", "d = {}"),
            where={"kind": "majority_vote"},
            law=("formula", "formula"),
            errors=2,
        ),
    ),
    claims=_claims,
    remarks=lambda answers: (_LARGE,),
)

FIGURE_CONSTRUCTION = Exhibit(
    caption="Mean squared error of layers that were written down, on fresh points. First: one "
    "full-rank softmax head on N points. Second: d rank-one softmax heads with logits τ·x_j·y_j "
    "and a threshold on their sum, two orthonormal points. Third: two rank-one hardmax layers.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _paper, Scale.PAPER: _paper},
    present=CHECK.present,
)
