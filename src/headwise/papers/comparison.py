"""Compare published with measured values, by one rule for every cell of every exhibit.

A cell agrees when the two differ by at most max(0.015, 3 combined standard errors). This was fixed
before anything was run. Two additions came with the trained figures, and both make agreement
harder: losses near zero must lie within a share of the published value, and noise never makes a
value agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headwise.report import Table

#: The least difference that counts, whatever the standard errors.
FLOOR = 0.015

#: How many combined standard errors a difference may have.
STANDARD_ERRORS = 3.0

#: Noise that allows a larger share of the published value decides nothing; a loss that is further
#: off by this share differs.
SHARE = 0.2

RULE = (
    "A published value agrees if the measured one differs from it by at most max(0.015, 3 combined "
    "standard errors). For a trained loss, a fifth of the published value replaces 0.015 if it is "
    "less. A value that would agree is undecided if 3 combined standard errors exceed a fifth of "
    "the published value (and, for a rank, 0.015). A choice from a grid, such as a critical head "
    "dimension, agrees if the published one lies within the 99.7 % range of simulated repeats. A "
    "second count uses noise alone: how many values lie within 3 standard errors, or within that "
    "range."
)

#: What the star in a table of cells means.
STAR = (
    f"* further from the published value than allowed: {FLOOR} (for a loss, a fifth of it if that "
    f"is less), or {STANDARD_ERRORS:.0f} combined standard errors if that is more"
)

#: Why an exhibit has no cells.
NOTHING_PRINTED = "no published values"
OTHER_SIZES = "published for other sizes"
WITHOUT_NUMBERS = "a figure, no numbers"
NOTHING_TO_MEASURE = "statements in words; no published values"


@dataclass(frozen=True)
class Cell:
    """One published value and what was measured for it.

    Attributes:
        name: Which value.
        printed: The published value.
        measured: The measured value.
        stderr: Its standard error.
        printed_stderr: The standard error of the published value.
        floor: The least difference that counts.
        statistic: What the measured number is.
        reach: How far noise moves a choice from a grid, for which standard errors say little; it
            takes the place of three of them.
    """

    name: str
    printed: float
    measured: float
    stderr: float
    printed_stderr: float = 0.0
    floor: float = FLOOR
    statistic: str = "measured"
    reach: float | None = None

    @property
    def difference(self) -> float:
        """Return measured less published."""
        return self.measured - self.printed

    @property
    def noise(self) -> float:
        """Return three combined standard errors, or the reach of a choice."""
        if self.reach is not None:
            return self.reach
        return STANDARD_ERRORS * math.hypot(self.stderr, self.printed_stderr)

    @property
    def tolerance(self) -> float:
        """Return how far apart the two may lie."""
        return max(self.floor, self.noise)

    @property
    def differs(self) -> bool:
        """Return whether they lie further apart than that."""
        return abs(self.difference) > self.tolerance

    @property
    def within_noise(self) -> bool:
        """Return whether they lie within three standard errors, with no floor."""
        return abs(self.difference) <= self.noise

    @property
    def verdict(self) -> str:
        """Return "agrees", "differs", or "undecided" if noise makes agreement meaningless."""
        if self.differs:
            return "differs"
        noisy = self.tolerance > max(self.floor, SHARE * self.printed)
        return "undecided" if noisy else "agrees"

    @property
    def agrees(self) -> bool:
        """Return whether they agree, and could have differed."""
        return self.verdict == "agrees"


def verdict(cells: Sequence[Cell], uncompared: str = NOTHING_PRINTED) -> str:
    """Return how many cells agree, in words; without cells, why there are none."""
    if not cells:
        return uncompared
    agreeing = sum(cell.agrees for cell in cells)
    if agreeing == len(cells):
        return f"all {len(cells)} agree"
    undecided = sum(cell.verdict == "undecided" for cell in cells)
    return f"{agreeing} of {len(cells)} agree" + (f", {undecided} undecided" if undecided else "")


def within_noise(cells: Sequence[Cell]) -> str:
    """Return how many cells lie within three standard errors, in words."""
    return f"{sum(cell.within_noise for cell in cells)} of {len(cells)}" if cells else ""


def comparison_table(cells: Sequence[Cell]) -> Table:
    """Return every cell with its verdict; cells that differ are stressed."""
    statistics = {cell.statistic for cell in cells}
    measured = statistics.pop() if len(statistics) == 1 else "measured"
    rows = (
        {
            "cell": cell.name,
            "published": cell.printed,
            measured: round(cell.measured, 4),
            "± standard error": round(cell.stderr, 4),
            "difference": round(cell.difference, 4),
            "allowed": round(cell.tolerance, 4),
            "verdict": cell.verdict,
            "within 3 standard errors": "yes" if cell.within_noise else "no",
        }
        for cell in cells
    )
    differing = frozenset((i, 6) for i, cell in enumerate(cells) if cell.differs)
    return Table.of(rows, differing, title="Published and measured")
