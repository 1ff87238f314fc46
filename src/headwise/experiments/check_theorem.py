"""Check a statement of the papers, or of this project, by simulation."""

from __future__ import annotations

from typing import Literal

from headwise.runs import Row, Spec

#: The statements of the rank paper.
RankPaperLabel = Literal[
    "Lemma 1",
    "Lemma 2",
    "Lemma 3",
    "Lemma 4",
    "Theorem 2",
    "Theorem 1, barrier",
    "Theorem 1, saturation",
    "Remark 1",
    "Remark 2",
    "Remark 3",
    "Equations 66–69",
    "Equations 70–72",
    "Remark 5",
    "Lemma 5, closed form",
    "Lemma 5, distance",
    "Lemma 6",
    "Proposition 1",
    "Low-rank bottleneck",
]

#: The statements of the heads paper.
HeadsPaperLabel = Literal[
    "Upper bound",
    "Reduction to sgn",
    "Lemma sgn = Tu",
    "Lemma orthogonality",
    "Spectrum tail",
    "Lemma reach",
    "Theorem 2, high accuracy",
    "Theorem 2, high dimension",
    "Theorem on biased neighbours",
    "Random rank-one head",
    "Majority vote",
    "Two-layer construction",
]

#: Statements that are in neither paper.
OwnLabel = Literal[
    "Gap lemma",
    "Row gaps",
    "Total variation",
    "Stable range",
    "Finite law",
    "Lower bound, any values",
    "Lower bound, values a·I",
]

#: Every statement of ``headwise.theory.theorems``, by its label.
Label = Literal[RankPaperLabel, HeadsPaperLabel, OwnLabel]


class CheckTheorem(Spec, frozen=True):
    """Check one statement: a simulation that must hold, and a violator that must fail.

    >>> row = CheckTheorem(statement="Lemma 1").ask()
    >>> row["holds"], row["violator_rejected"]
    (True, True)
    """

    kind: Literal["check_theorem"] = "check_theorem"
    revision: Literal[3] = 3
    statement: Label
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    def ask(self) -> Row:
        """Return whether the simulation holds and the violator fails, with the deciding numbers."""
        from headwise.theory.theorems import STATEMENTS

        (statement,) = (one for one in STATEMENTS if one.label == self.statement)
        seen, planted = statement.simulate(self.seed), statement.violate(self.seed)
        check, broken = seen.headline, planted.headline
        return {
            "source": statement.source.value,
            "place": statement.where,
            "hypothesis": statement.hypothesis,
            "says": statement.conclusion,
            "finding": statement.finding,
            "observed": check.observed.mean,
            "stderr": check.observed.stderr,
            "sense": check.sense.value,
            "bound": check.bound,
            "hypothesis_met": seen.meets_hypothesis,
            "holds": seen.meets_conclusion,
            "violator": broken.observed.mean,
            "violator_rejected": not (planted.meets_hypothesis or planted.meets_conclusion),
        }
