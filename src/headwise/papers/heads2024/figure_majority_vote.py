"""Majority vote: what random rank-one heads reach, by formula, by two layers, in the limit."""

from __future__ import annotations

from headwise.experiments.majority_vote import MajorityVote
from headwise.papers.exhibit import Answers, Claim, Exhibit, Scale, grid
from headwise.papers.kinds.check import Check, RowPanel
from headwise.report import Table
from headwise.runs import Row, Spec
from headwise.theory.harmonic_bound import error_lower_bound

HEADS = (1, 5, 21, 101, 401, 1001)


def _paper() -> list[Spec]:
    drawn = grid(MajorityVote, {"layers": 40, "samples": 200}, width=(4, 16, 64), heads=HEADS)
    formula = grid(MajorityVote, {"layers": 0}, width=(4, 16, 64), heads=(4001, 16001))
    return [*drawn, *formula]


def _miniature() -> list[Spec]:
    return grid(MajorityVote, {"layers": 10, "samples": 100}, width=(4, 8), heads=(1, 5, 21))


def _worst(answers: Answers) -> float:
    """Return the largest distance of the two layers from the formula, in standard errors."""
    rows = [row for row in answers.rows() if "simulated" in row]
    return max(abs(row["simulated"] - row["formula"]) / row["stderr"] for row in rows)


def _claims(answers: Answers) -> tuple[Claim, ...]:
    words = "the two layers' error is the formula's, to within 4 standard errors"
    return (Claim(words, _worst(answers) < 4), *_right_often(answers))


def _remarks(answers: Answers) -> tuple[str, ...]:
    rows = answers.rows()
    return (
        f"Over {sum('simulated' in row for row in rows)} settings the two layers are at "
        f"most {_worst(answers):.1f} standard errors from the formula. A vote of random rank-one "
        "heads needs H ≫ d of them: its error falls like √(d/H).",
        _beside_the_bound(rows),
    )


def _right_often(answers: Answers) -> tuple[Claim, ...]:
    """Judge the talk's words; in miniature there are too few heads."""
    if answers.scale is Scale.MINIATURE:
        return ()
    most = max(answers.values("heads"))
    drawn = max(row["heads"] for row in answers.rows() if "simulated" in row)
    ends = [row["formula"] for row in answers.rows(heads=most)]
    return (
        Claim(
            f"the majority of many heads is right with high probability: at each width {most:,} "
            f"heads err in at most one case of ten (by the formula; simulated up to {drawn:,})",
            # A wrong choice has a squared error of 2.
            max(ends) <= 0.2,
            "the authors' talk, on the modified attention construction; one in ten chosen by us",
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
        "The lower bound holds for a single layer, not for a vote that a second layer looks up. "
        f"In {len(below)} of {len(rows)} settings the vote is below the bound of "
        "one layer with as many rank-one heads and any V"
        + (f" (error and bound; {'; '.join(below)})." if below else ".")
    )


def _panel(title: str, law: tuple[str, str]) -> RowPanel:
    """What the two layers do, beside one of the thin lines."""
    return RowPanel(
        title,
        ("heads", "heads"),
        ("simulated", "mean squared error"),
        ("width", "d = {}"),
        law=law,
        errors=2,
        y_scale="log",
    )


#: The columns of the table, and the fields they show.
COLUMNS = {
    "d": "width",
    "heads": "heads",
    "formula": "formula",
    "two layers": "simulated",
    "± standard error": "stderr",
    "asymptote": "limit",
}


def _table(answers: Answers) -> Table:
    rows = ({name: row.get(field) for name, field in COLUMNS.items()} for row in answers.rows())
    return Table.of(rows, title="Error of the majority vote")


CHECK = Check(
    panels=(
        _panel("Two layers follow the formula", ("formula", "formula")),
        _panel("Large widths approach (2/π)·atan((π/2)√(d/H))", ("limit", "asymptote")),
    ),
    claims=_claims,
    remarks=_remarks,
    tables=lambda answers: (_table(answers),),
)

FIGURE_MAJORITY_VOTE = Exhibit(
    caption="Mean squared error on the nearer of two orthonormal neighbours. Points: two rank-one "
    "hardmax layers, the first votes and the second looks the winner up; bands: two standard "
    "errors. Thin lines: the exact formula (left), its asymptote (right).",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _paper, Scale.PAPER: _paper},
    present=CHECK.present,
)
