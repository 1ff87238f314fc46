"""Constructed layers: one full-rank head is exact, d soft rank-one heads can tally."""

from __future__ import annotations

import math
from collections.abc import Iterable

from headwise.experiments.construction import Construction
from headwise.experiments.majority_vote import MajorityVote
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.report import Curve, Line, Panel
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


def _present(answers: Answers) -> Presentation:
    exact = answers.rows(layer="hardmax")
    tallied = answers.rows(layer="tally")
    return Presentation(
        panels=(_soft_panel(answers), _tally_panel(answers), _vote_panel(answers)),
        claims=(
            Claim(
                f"one full-rank hardmax head is exact for {len(exact)} values of N",
                all(row["error"] == 0 for row in exact),
                "talk, upper bound",
            ),
            Claim(
                "d rank-one softmax heads with a threshold are exact for two points as τ → 0",
                all(row["error"] == 0 for row in tallied if row["heat"] <= 0.1),
            ),
            Claim(
                "two rank-one layers come nearer with more heads",
                _falling(answers),
                "talk, construction with two layers",
            ),
        ),
        remarks=(
            "At large τ the rank-one heads decide hard, coordinate by coordinate, and the tally "
            "becomes a majority vote of the d coordinates: the error rises towards that of a vote.",
        ),
    )


def _soft_panel(answers: Answers) -> Panel:
    curves = tuple(
        Curve(f"N = {n}", _line(answers.rows(layer="softmax", tokens=n), "heat", "error"))
        for n in dict.fromkeys(row["tokens"] for row in answers.rows(layer="softmax"))
    )
    return Panel(
        "One full-rank head: the colder the better",
        "temperature",
        "mean squared error",
        curves,
        x_scale="log",
        y_scale="log",
        x_ticks=_places(curves),
    )


def _tally_panel(answers: Answers) -> Panel:
    widths = dict.fromkeys(row["width"] for row in answers.rows(layer="tally"))
    curves = tuple(
        Curve(f"d = H = {d}", _line(answers.rows(layer="tally", width=d), "heat", "error"))
        for d in widths
    )
    return Panel(
        "Soft rank-one heads tally, hard ones vote",
        "τ",
        "mean squared error",
        curves,
        x_scale="log",
        x_ticks=tuple(heat for heat in _places(curves) if math.log10(heat).is_integer()),
    )


def _vote_panel(answers: Answers) -> Panel:
    widths = dict.fromkeys(row["width"] for row in answers.rows(kind="majority_vote"))
    curves = []
    for width in widths:
        rows = answers.rows(kind="majority_vote", width=width)
        curves.append(
            Curve(
                f"d = {width}",
                _line(rows, "heads", "simulated"),
                spread=tuple(2 * row["stderr"] for row in rows),
                law=_line(rows, "heads", "formula"),
            )
        )
    return Panel(
        "Two rank-one layers: vote, then look up",
        "heads",
        "mean squared error",
        tuple(curves),
        x_scale="log",
        x_ticks=_places(curves),
        law_label="formula",
    )


def _places(curves: Iterable[Curve]) -> tuple[float | int, ...]:
    """Return every place at which something was measured."""
    return tuple(sorted({x for curve in curves for x in curve.mean.x}))


def _line(rows: list[dict], x: str, y: str) -> Line:
    return Line(tuple(row[x] for row in rows), tuple(row[y] for row in rows))


def _falling(answers: Answers) -> bool:
    found: dict[int, list[float]] = {}
    for row in answers.rows(kind="majority_vote"):
        found.setdefault(row["width"], []).append(row["simulated"])
    return all(errors == sorted(errors, reverse=True) for errors in found.values())


FIGURE_CONSTRUCTION = Exhibit(
    name="heads2024/figure_construction",
    title="Constructions: exact full-rank head, rank-one tally, two-layer vote",
    caption="Mean squared error of layers that were written down, on fresh points. Left: one "
    "full-rank softmax head on N points. Middle: d rank-one softmax heads with logits τ·x_j·y_j "
    "and a threshold on their sum, two orthonormal points. Right: two rank-one hardmax layers.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _paper, Scale.PAPER: _paper},
    present=_present,
)
