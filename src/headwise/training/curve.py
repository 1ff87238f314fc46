"""Learning curves as rows, at steps evenly spaced on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwise.training.settings import Member


@dataclass(frozen=True)
class CurveRow:
    """One member after ``step`` updates. Losses that are not known are None.

    Args:
        member: The index of the member.
        variant: The name of its variant.
        seed: Its seed.
        learning_rate: Its learning rate.
        step: The number of updates so far.
        train_loss: The loss of the last batch, before its update.
        epoch_loss: The mean loss of the last whole epoch.
        best_epoch_loss: The smallest such mean so far, which the heads paper reports.
        test_loss: The loss on fresh data.
        test_score: The score on fresh data, if the task has one.
        diverged_at: The step at which the member diverged; it has no losses from there on.

    Example:
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
        """Make the row of a member."""
        return cls(index, member.variant, member.seed, member.learning_rate, **known)


Sink = Callable[[CurveRow], None]


def nowhere(row: CurveRow) -> None:
    """Ignore a row."""


def curve_steps(steps: int, per_decade: int) -> tuple[int, ...]:
    """Return the steps at which rows are recorded, evenly spaced on a logarithmic scale.

    Args:
        steps: The last step.
        per_decade: About how many rows each decade has.

    Returns:
        The steps, with the last one.

    Example:
        >>> curve_steps(120, per_decade=3)
        (1, 2, 5, 10, 22, 46, 100, 120)
    """
    found, power = {steps}, 0
    while (step := round(10 ** (power / per_decade))) <= steps:
        found.add(step)
        power += 1
    return tuple(sorted(found))
