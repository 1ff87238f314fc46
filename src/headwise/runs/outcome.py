"""Outcome: the rows of one spec, or the reason why it has none."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.report.results import short_repr
from headwise.runs.provenance import Provenance
from headwise.runs.spec import Row


@dataclass(frozen=True)
class Answer:
    """The rows that a spec returned.

    Args:
        key: The key of the spec.
        rows: The rows.
        provenance: How they were computed.

    Example:
        >>> from headwise.runs.examples import Square
        >>> spec = Square(number=2)
        >>> found = Provenance("0.1.0", "2.13.0", "cpu", None, 0.01, "headwise reproduce", None)
        >>> Answer(spec.key, ({"square": 4.0},), found).rows
        ({'square': 4.0},)
    """

    key: str
    rows: tuple[Row, ...]
    provenance: Provenance

    __repr__ = short_repr


@dataclass(frozen=True)
class Failure:
    """The reason why a spec has no rows: a traceback, or how its workers died.

    Args:
        key: The key of the spec.
        traceback: The traceback, or one line.
        provenance: Where it was computed.

    Example:
        >>> from headwise.runs.examples import Square
        >>> found = Provenance("0.1.0", "2.13.0", "cpu", None, 0.01, "headwise reproduce", None)
        >>> Failure(Square(number=2).key, "the worker died 3 times", found).reason
        'the worker died 3 times'
    """

    key: str
    traceback: str
    provenance: Provenance

    @property
    def reason(self) -> str:
        """Return the last line of the traceback: the exception and its message."""
        return self.traceback.strip().splitlines()[-1]


Outcome = Answer | Failure
