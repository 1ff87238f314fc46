"""Spend one budget over many parts of a model so that the total loss is least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.errors import BadInputError

#: Parameters of a model with biases have a small common divisor: a budget of more units than this
#: would take too much memory.
MOST_UNITS = 2**18


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

    A dynamic programme over the parts, in units of the greatest common divisor of the costs. It is
    exact for any curves and costs whose budget has at most ``MOST_UNITS`` units; beyond that,
    costs are rounded up to larger units. Of equal losses the cheaper choice wins.

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
    best_of_all = [
        min(part.options, key=lambda option: (option.loss, option.cost)) for part in parts
    ]
    if sum(option.cost for option in best_of_all) <= budget:
        return best_of_all
    steps, room = _in_units(parts, budget - least)
    best = np.zeros(room + 1)
    choices = []
    for part, own in zip(parts, steps, strict=True):
        best, chosen = _with_part(best, part, own)
        choices.append(chosen)
    return _traced(parts, steps, choices, int(best.argmin()))


def _in_units(parts: Sequence[Part], room: int) -> tuple[list[list[int]], int]:
    """Count what each option costs above the cheapest of its part, and the budget above these."""
    above = [
        [option.cost - min(other.cost for other in part.options) for option in part.options]
        for part in parts
    ]
    unit = math.gcd(*(cost for costs in above for cost in costs)) or 1
    # Larger units for a budget of many: rounded up, costs still fit it.
    unit *= max(1, math.ceil(room / unit / MOST_UNITS))
    return [[-(-cost // unit) for cost in costs] for costs in above], room // unit


def _with_part(best: np.ndarray, part: Part, steps: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the least loss for each exact budget with one part more, and the option taken."""
    found = np.full_like(best, np.inf)
    chosen = np.zeros(len(best), dtype=np.int16)
    for index, (option, step) in enumerate(zip(part.options, steps, strict=True)):
        if step >= len(best):
            continue
        tried = np.full_like(best, np.inf)
        tried[step:] = best[: len(best) - step] + option.loss
        better = tried < found
        found[better], chosen[better] = tried[better], index
    return found, chosen


def _traced(
    parts: Sequence[Part], steps: list[list[int]], choices: list[np.ndarray], place: int
) -> list[Option]:
    """Read the choices back, from the last part to the first."""
    taken = []
    for part, own, chosen in zip(reversed(parts), reversed(steps), reversed(choices), strict=True):
        index = chosen[place]
        taken.append(part.options[index])
        place -= own[index]
    return taken[::-1]
