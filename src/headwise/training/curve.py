"""Learning curves as rows, at steps evenly spaced on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwise.training.settings import Member


@dataclass(frozen=True)
class CurveRow:
    """One member after ``step`` updates. Losses are None where there are none to tell.

    ``train_loss`` is that of the last batch, before its update; ``epoch_loss`` the mean over the
    last whole epoch and ``best_epoch_loss`` the least so far, which is what the heads paper
    reports. Test data are fresh. A member that diverged has its step in ``diverged_at`` and no
    losses from there on.

    >>> CurveRow.of(0, Member("", 0, 0.1), step=5, train_loss=0.5).train_loss
    0.5
    """

    member: int
    variant: str
    seed: int
    learning_rate: float
    step: int
    train_loss: float | None = None
    epoch_loss: float | None = None
    best_epoch_loss: float | None = None
    test_loss: float | None = None
    test_score: float | None = None
    diverged_at: int | None = None

    @classmethod
    def of(cls, index: int, member: Member, **known: Any) -> CurveRow:
        """The row of a member."""
        return cls(index, member.variant, member.seed, member.learning_rate, **known)


Sink = Callable[[CurveRow], None]


def nowhere(row: CurveRow) -> None:
    """A sink for rows that nobody waits for.

    >>> nowhere(CurveRow(0, "", 0, 0.1, 1))
    """


def curve_steps(steps: int, per_decade: int) -> tuple[int, ...]:
    """Where rows are taken: about ``per_decade`` in each decade, and the last step.

    >>> curve_steps(120, per_decade=3)
    (1, 2, 5, 10, 22, 46, 100, 120)
    """
    found, power = {steps}, 0
    while (step := round(10 ** (power / per_decade))) <= steps:
        found.add(step)
        power += 1
    return tuple(sorted(found))
