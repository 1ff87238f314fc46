"""Majority vote: what random rank-one heads reach, by formula, by two layers, in the limit."""

from __future__ import annotations

from headwise.experiments.majority_vote import MajorityVote
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec
from headwise.theory.harmonics import error_lower_bound

HEADS = (1, 5, 21, 101, 401, 1001)

#: What is drawn as thin lines, and its name.
THIN = {"formula": "formula", "limit": "asymptote"}


def _paper() -> list[Spec]:
    drawn = grid(MajorityVote, {"layers": 40, "samples": 200}, width=(4, 16, 64), heads=HEADS)
    formula = grid(MajorityVote, {"layers": 0}, width=(4, 16, 64), heads=(4001, 16001))
    return [*drawn, *formula]


def _miniature() -> list[Spec]:
    return grid(MajorityVote, {"layers": 10, "samples": 100}, width=(4, 8), heads=(1, 5, 21))


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    worst = max(_deviation(row) for row in rows if "simulated" in row)
    return Presentation(
        panels=(
            _panel(answers, "Two layers follow the formula", "formula"),
            _panel(answers, "Large widths approach (2/π)·atan((π/2)√(d/H))", "limit"),
        ),
        claims=(
            Claim("the two layers' error is the formula's, to within 4 standard errors", worst < 4),
        ),
        tables=(_table(answers),),
        remarks=(
            f"Over {sum('simulated' in row for row in rows)} settings the two layers are at "
            f"most {worst:.1f} standard errors from the formula. A vote of random rank-one heads "
            "needs H ≫ d of them: its error falls like √(d/H).",
            _beside_the_bound(rows),
        ),
    )


def _beside_the_bound(rows: list[Row]) -> str:
    """Name the settings in which two layers go below the bound of one layer."""
    found = [(row, error_lower_bound(row["width"], 1, row["heads"])) for row in rows]
    below = [
        f"d = {row['width']}, H = {row['heads']:,}: {row['formula']:.3f} and {bound:.3f}"
        for row, bound in found
        if row["formula"] < bound
    ]
    return (
        "The lower bound is one on a single layer, and does not speak of a vote that a second "
        f"layer looks up. In {len(below)} of {len(rows)} settings the vote is below the bound of "
        "one layer with as many rank-one heads and any V"
        + (f" (error and bound; {'; '.join(below)})." if below else ".")
    )


def _panel(answers: Answers, title: str, thin: str) -> Panel:
    """What the two layers do, beside one of the fields of THIN."""
    return Panel(
        title,
        "heads",
        "mean squared error",
        tuple(_curve(answers, width, thin) for width in answers.values("width")),
        x_scale="log",
        y_scale="log",
        x_ticks=tuple(sorted(answers.values("heads"))),
        law_label=THIN[thin],
    )


def _deviation(row: Row) -> float:
    return abs(row["simulated"] - row["formula"]) / row["stderr"]


def _curve(answers: Answers, width: int, thin: str) -> Curve:
    rows = answers.rows(width=width)
    seen = [row for row in rows if "simulated" in row]
    return Curve(
        f"d = {width}",
        Line(tuple(r["heads"] for r in seen), tuple(r["simulated"] for r in seen)),
        spread=tuple(2 * r["stderr"] for r in seen),
        law=Line(tuple(r["heads"] for r in rows), tuple(r[thin] for r in rows)),
    )


def _table(answers: Answers) -> Table:
    rows = tuple(
        (
            row["width"],
            row["heads"],
            row["formula"],
            row.get("simulated"),
            row.get("stderr"),
            row["limit"],
        )
        for row in answers.rows()
    )
    columns = ("d", "heads", "formula", "two layers", "± standard error", "asymptote")
    return Table(columns, rows, title="Error of the majority vote")


FIGURE_MAJORITY_VOTE = Exhibit(
    name="heads2024/figure_majority_vote",
    title="Majority vote of random rank-one heads",
    caption="Mean squared error on the nearer of two orthonormal neighbours. Points: two rank-one "
    "hardmax layers, the first votes and the second looks the winner up; bands: two standard "
    "errors. Thin lines: the exact formula (left), its asymptote (right).",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _paper, Scale.PAPER: _paper},
    present=_present,
)
