"""What do the lower bounds say about H heads of rank r in d dimensions?"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from headwise.runs import Row, Spec


class BoundHeads(Spec, frozen=True):
    """The least error of these heads on the nearer of two neighbours, and the heads an error needs.

    ``values`` chooses the value matrices that the heads may have, ``error`` the error for which
    heads are counted. The plateau is the error that remains once degree 1 is captured.

    >>> row = BoundHeads(width=64, rank=1, heads=64, values="identity").ask()
    >>> round(row["bound"], 4), round(row["plateau"], 4), round(row["log10_heads_needed"], 2)
    (0.1791, 0.1792, 7.37)
    """

    kind: Literal["bound_heads"] = "bound_heads"
    revision: Literal[1] = 1
    width: Annotated[int, Field(ge=2)]
    rank: PositiveInt
    heads: PositiveInt
    values: Literal["any", "identity"] = "any"
    error: Annotated[float, Field(gt=0, le=0.5)] = 0.1

    @model_validator(mode="after")
    def _rank_is_low(self) -> BoundHeads:
        if self.rank >= self.width:
            raise ValueError(
                f"expected a rank below the width {self.width}, got {self.rank}; pass a smaller "
                "one: a single head of full rank is exact"
            )
        return self

    def ask(self) -> Row:
        """Return the bound, the plateau and the logarithm of the number of heads needed."""
        from headwise.theory.harmonic_bound import (
            Values,
            energies,
            error_lower_bound,
            log_heads_needed,
        )

        values = Values(self.values)
        needed = log_heads_needed(self.width, self.rank, self.error, values)
        return {
            "bound": error_lower_bound(self.width, self.rank, self.heads, values),
            "plateau": (1 - float(energies(self.width, 1)[0])) / 2,
            "log10_heads_needed": needed / math.log(10),
        }
