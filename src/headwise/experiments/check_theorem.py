"""Does a printed statement survive a simulation that tries to break it?"""

from __future__ import annotations

from typing import Literal

from headwise.runs import Row, Spec

#: The statements of the rank paper.
RankPaperLabel = Literal[
    "Lemma 1",
    "Lemma 2",
    "Lemma 3",
    "Lemma 4",
    "Lemma 5",
    "Lemma 6",
    "Theorem 1",
    "Theorem 1, second half",
    "Theorem 2",
    "Remark 3",
    "Proposition 1",
    "Eckart–Young bottleneck",
]

#: Every statement of ``headwise.theory.theorems``, by its label.
Label = Literal[
    RankPaperLabel,
    "Finite law",
    "Lower bound, any values",
    "Lower bound, values a·I",
    "Majority vote",
]


class CheckTheorem(Spec, frozen=True):
    """A statement's simulation against its bound, and a planted violator against the same.

    >>> row = CheckTheorem(statement="Lemma 1").ask()
    >>> row["holds"], row["violator_rejected"]
    (True, True)
    """

    kind: Literal["check_theorem"] = "check_theorem"
    revision: Literal[1] = 1
    statement: Label
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    def ask(self) -> Row:
        """What was observed, its bound, and whether it holds; the same of the violator."""
        from headwise.theory.theorems import STATEMENTS

        (statement,) = (one for one in STATEMENTS if one.label == self.statement)
        seen = statement.check(statement.simulate(self.seed))
        planted = statement.check(statement.violate(self.seed))
        return {
            "says": statement.words,
            "observed": seen.observed.mean,
            "stderr": seen.observed.stderr,
            "sense": statement.sense.value,
            "bound": seen.bound,
            "holds": seen.accepted,
            "violator": planted.observed.mean,
            "violator_rejected": not planted.accepted,
        }
