"""Printed value against measured value: one rule for every cell of every exhibit.

A cell agrees when the two differ by at most max(0.015, 3 combined standard errors). That was fixed
before anything was run. Two things were added with the trained figures, and only make agreement
harder: losses near zero are held to a share of the printed value, and noise buys no agreement.
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

#: Noise that allows a larger share of the printed value than this decides nothing, and a loss that
#: is further off by this share differs.
SHARE = 0.2

#: The rule in words.
RULE = (
    "A printed value agrees when the measured one lies within max(0.015, 3 combined standard "
    "errors) of it. Losses of training come near zero: they must lie within a fifth of the printed "
    "value where that is less than 0.015. Where standard errors allow more than a fifth of the "
    "printed value (and, of a rank, more than 0.015), a cell that does not differ is undecided: "
    "noise buys no agreement."
)

#: Said of an exhibit without cells.
NOTHING_PRINTED = "nothing printed to compare with"

#: The same where there are printed values, of other sizes.
OTHER_SIZES = "printed for other sizes"

#: The same where the paper has a figure whose values nobody has read off.
NOT_ON_RECORD = "printed as a figure; its values are not on record here"


@dataclass(frozen=True)
class Cell:
    """One printed value and what was measured for it.

    ``floor`` is the least difference that counts, ``statistic`` what the measured number is.

    >>> cell = Cell("100 tokens, d_h 64", printed=0.606, measured=0.596, stderr=0.002)
    >>> cell.agrees, round(cell.tolerance, 3)
    (True, 0.015)
    """

    name: str
    printed: float
    measured: float
    stderr: float
    printed_stderr: float = 0.0
    floor: float = FLOOR
    statistic: str = "measured"

    @property
    def difference(self) -> float:
        """Measured less printed."""
        return self.measured - self.printed

    @property
    def tolerance(self) -> float:
        """How far apart the two may lie."""
        return max(self.floor, STANDARD_ERRORS * math.hypot(self.stderr, self.printed_stderr))

    @property
    def differs(self) -> bool:
        """Whether they lie further apart than that."""
        return abs(self.difference) > self.tolerance

    @property
    def verdict(self) -> str:
        """Agrees, differs, or undecided: too noisy for agreement to mean anything.

        >>> Cell("8 heads", printed=0.12, measured=2.4, stderr=2.2).verdict
        'undecided'
        """
        if self.differs:
            return "differs"
        noisy = self.tolerance > max(self.floor, SHARE * self.printed)
        return "undecided" if noisy else "agrees"

    @property
    def agrees(self) -> bool:
        """Whether they agree, and could have differed."""
        return self.verdict == "agrees"


def verdict(cells: Sequence[Cell], uncompared: str = NOTHING_PRINTED) -> str:
    """How many of the cells agree, in words; without cells, why there are none.

    >>> verdict([Cell("a", 0.5, 0.5, 0.0), Cell("b", 0.5, 0.6, 0.0)])
    '1 of 2 agree'
    >>> verdict([Cell("a", 0.5, 0.5, 0.0), Cell("b", 0.5, 0.6, 0.2)])
    '1 of 2 agree, 1 undecided'
    """
    if not cells:
        return uncompared
    agreeing = sum(cell.agrees for cell in cells)
    if agreeing == len(cells):
        return f"all {len(cells)} agree"
    undecided = sum(cell.verdict == "undecided" for cell in cells)
    return f"{agreeing} of {len(cells)} agree" + (f", {undecided} undecided" if undecided else "")


def comparison_table(cells: Sequence[Cell]) -> Table:
    """Every cell with its verdict; those that differ are stressed.

    >>> print(comparison_table([Cell("d_h 2", 0.5, 0.6, 0.001)]).text())
    cell   printed  measured  ± standard error  difference  allowed  verdict
    d_h 2      0.5       0.6             0.001         0.1    0.015  differs*
    """
    columns = (
        "cell",
        "printed",
        _statistic(cells),
        "± standard error",
        "difference",
        "allowed",
        "verdict",
    )
    rows = tuple(
        (
            cell.name,
            cell.printed,
            round(cell.measured, 4),
            round(cell.stderr, 4),
            round(cell.difference, 4),
            round(cell.tolerance, 4),
            cell.verdict,
        )
        for cell in cells
    )
    differing = frozenset((i, 6) for i, cell in enumerate(cells) if cell.differs)
    return Table(columns, rows, differing, title="Printed and measured")


def _statistic(cells: Sequence[Cell]) -> str:
    """What the measured numbers are, where all are the same."""
    found = {cell.statistic for cell in cells}
    return found.pop() if len(found) == 1 else "measured"
