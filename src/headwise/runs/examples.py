"""A spec that is answered at once, for the examples in the documentation."""

from __future__ import annotations

from typing import Literal

from headwise.runs.spec import Row, Spec


class Square(Spec, frozen=True):
    """What is the square of a number?"""

    kind: Literal["square"] = "square"
    revision: Literal[1] = 1
    number: float

    def ask(self) -> Row:
        """Return the square."""
        return {"square": self.number**2}
