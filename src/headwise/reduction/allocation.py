"""Spend one budget over many parts of a model so that the total loss is least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.errors import BadInputError


@dataclass(frozen=True)
class Option:
    """One rank that a part may have, what it costs and what it loses."""

    rank: int
    cost: int
    loss: float


@dataclass(frozen=True)
class Part:
    """A part of a model that can be cut: the keys or the values of one layer.

    Args:
        layer: Index of the layer.
        kind: "keys" or "values".
        options: The ranks it may have.
        energy: The loss at rank 0.
    """

    layer: int
    kind: str
    options: tuple[Option, ...]
    energy: float = 0.0

    @property
    def full(self) -> Option:
        """The option of the largest rank."""
        return max(self.options, key=lambda option: option.rank)


def allocate(parts: Sequence[Part], budget: int) -> list[Option]:
    """Choose one option for each part: the least total loss whose total cost fits the budget.

    The answer is exact for any curves and costs: a dynamic programme over the parts, in units of
    the greatest common divisor of the costs. Of equal losses the cheaper choice wins.

    Args:
        parts: The parts with their options.
        budget: The largest total cost.

    Returns:
        The chosen options, in the order of the parts.

    Raises:
        BadInputError: No choice fits the budget; the smallest that fits is named.

    Example:
        >>> first = Part(0, "keys", (Option(8, 8, 5.0), Option(16, 16, 0.0)))
        >>> second = Part(0, "values", (Option(8, 8, 1.0), Option(16, 16, 0.0)))
        >>> [option.rank for option in allocate([first, second], budget=24)]
        [16, 8]
    """
    least = sum(min(option.cost for option in part.options) for part in parts)
    if budget < least:
        raise BadInputError(
            f"expected a budget of at least {least:,}, got {budget:,}",
            hint=f"pass {least:,} or more, the smallest cost that any choice of ranks has",
        )
    unit = math.gcd(*(option.cost for part in parts for option in part.options)) or 1
    most = sum(max(option.cost for option in part.options) for part in parts) // unit
    room = min(budget // unit, most)
    best = np.zeros(room + 1)
    choices = []
    for part in parts:
        best, chosen = _with_part(best, part, unit)
        choices.append(chosen)
    return _traced(parts, choices, int(best.argmin()), unit)


def _with_part(best: np.ndarray, part: Part, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least loss for each exact budget with one part more, and the option taken."""
    found = np.full_like(best, np.inf)
    chosen = np.zeros(len(best), dtype=np.int16)
    for index, option in enumerate(part.options):
        step = option.cost // unit
        if step >= len(best):
            continue
        tried = np.full_like(best, np.inf)
        tried[step:] = best[: len(best) - step] + option.loss
        better = tried < found
        found[better], chosen[better] = tried[better], index
    return found, chosen


def _traced(
    parts: Sequence[Part], choices: list[np.ndarray], place: int, unit: int
) -> list[Option]:
    """Read the choices back, from the last part to the first."""
    taken = []
    for part, chosen in zip(reversed(parts), reversed(choices), strict=True):
        option = part.options[chosen[place]]
        taken.append(option)
        place -= option.cost // unit
    return taken[::-1]
