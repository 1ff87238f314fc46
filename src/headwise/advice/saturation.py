"""Where a rank curve saturates: by the rank paper's rule, and by ours."""

from __future__ import annotations

import itertools

from headwise.advice.curves import RankCurve, between
from headwise.errors import BadInputError
from headwise.theory.scaling import saturation_row


def paper_saturation(curve: RankCurve) -> int | None:
    """The row above the first improvement of about 0.01, on powers of two; None if there is none.

    The rule depends on the grid, so it is read on doublings, the nearest to the paper's own.

    >>> dims, means = (1, 2, 3, 4, 8), (0.2, 0.5, 0.52, 0.6, 0.605)
    >>> paper_saturation(RankCurve("paper", dims, means, (0.0,) * 5, 8, 0.6, "measured"))
    4
    """
    doublings = [
        (dim, mean)
        for dim, mean in zip(curve.head_dims, curve.mean, strict=True)
        if dim & (dim - 1) == 0
    ]
    # A curve that starts flat has not saturated there: the rule holds after the steepest rise.
    rises = [after[1] - before[1] for before, after in itertools.pairwise(doublings)]
    steepest = rises.index(max(rises)) if rises else 0
    try:
        dims, means = zip(*doublings[steepest:], strict=True)
        return saturation_row(dims, means)
    except BadInputError:
        return None


def our_saturation(curve: RankCurve, slack: float) -> int | None:
    """The smallest rank whose lower confidence limit is within ``slack`` of the plateau.

    ``slack`` is a share of the plateau. None when no measured rank gets there. Where sequences
    differ so much that the band stays wide, the limit is that of the difference to the top.

    >>> curve = RankCurve("model", (1, 2, 4), (0.2, 0.85, 0.95), (0.0, 0.0, 0.01), 8, 1.0, "")
    >>> our_saturation(curve, 0.1)
    4
    """
    goal = (1 - slack) * curve.plateau
    limits = zip(curve.head_dims, _lower_limits(curve), strict=True)
    return next((dim for dim, limit in limits if limit >= goal), None)


def saturated_from(curve: RankCurve, slack: float) -> int | None:
    """The smallest rank of all that is within ``slack``, by the curve between measured ones.

    >>> curve = RankCurve("law", (1, 64, 128), (0.1, 0.8, 1.0), (0.0,) * 3, 0, 1.0, "theory")
    >>> our_saturation(curve, 0.1), saturated_from(curve, 0.1)
    (128, 91)
    """
    found, goal = our_saturation(curve, slack), (1 - slack) * curve.plateau
    if found is None:
        return None
    limits = _lower_limits(curve)
    below = max((dim for dim in curve.head_dims if dim < found), default=0)
    ranks = range(below + 1, found)
    enough = (rank for rank in ranks if between(curve.head_dims, limits, rank) >= goal)
    return next(enough, found)


def _lower_limits(curve: RankCurve) -> list[float]:
    halves = curve.below_top_half_width or curve.half_width
    return [mean - half for mean, half in zip(curve.mean, halves, strict=True)]
