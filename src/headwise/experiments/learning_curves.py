"""Turn a training run into rows: one for each seed, with its curve and its end."""

from __future__ import annotations

from collections.abc import Sequence

from headwise.runs import Row
from headwise.training import CurveRow, Trained

#: Decimal digits of a number within a curve.
DIGITS = 6


def seed_rows(trained: Trained) -> list[Row]:
    """Return one row for each member.

    ``train_loss`` is the mean of the last whole epoch and ``best_train_loss`` the least such
    mean. The curve lists steps with their training loss (of the batch until there is a whole epoch)
    and test loss; both are None once diverged.
    """
    by_member: dict[int, list[CurveRow]] = {}
    for point in trained.rows:
        by_member.setdefault(point.member, []).append(point)
    return [_row(points) for _, points in sorted(by_member.items())]


def _row(points: Sequence[CurveRow]) -> Row:
    last = points[-1]
    return {
        "seed": last.seed,
        "train_loss": last.epoch_loss,
        "best_train_loss": last.best_epoch_loss,
        "test_loss": last.test_loss,
        "test_score": last.test_score,
        "diverged_at": last.diverged_at,
        "curve_step": [point.step for point in points],
        "curve_train": [_short(_training_loss(point)) for point in points],
        "curve_test": [_short(point.test_loss) for point in points],
    }


def _training_loss(point: CurveRow) -> float | None:
    """Return the mean over an epoch, which is steadier than a batch, once there is one."""
    return point.train_loss if point.epoch_loss is None else point.epoch_loss


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
