"""How small is the error of random heads with the best weights on the nearer of two neighbours?"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt, model_validator

from headwise.randomness import stream
from headwise.runs import Row, Spec


class RandomHeads(Spec, frozen=True):
    """The error of H random hardmax heads whose values are a·I, with the best choice of the a's.

    ``counted="difference"`` counts the error along x₁−x₂, as the lower bound does, in closed
    form for rank 1. ``counted="all"`` fits the a's to a sample by least squares and measures
    the whole error on another sample.

    >>> row = RandomHeads(width=8, heads=16).ask()
    >>> 0.2 < row["error"] < 0.4, row["stderr"]
    (True, 0.0)
    """

    kind: Literal["random_heads"] = "random_heads"
    revision: Literal[1] = 1
    width: Annotated[int, Field(ge=2)]
    heads: PositiveInt
    rank: PositiveInt = 1
    counted: Literal["difference", "all"] = "difference"
    seed: int = 0

    @model_validator(mode="after")
    def _closed_form_for_rank_one(self) -> RandomHeads:
        if self.counted == "difference" and self.rank != 1:
            raise ValueError(f"rank {self.rank} has no closed form; count 'all'")
        return self

    def ask(self) -> Row:
        """Return the error, and its standard error if it was sampled."""
        from headwise.theory.harmonic_bound import Values
        from headwise.theory.nearest import best_weights_error, random_heads_error

        if self.counted == "difference":
            drawn = stream(self.seed, "random heads", self.width)
            heads = torch.randn(self.heads, self.width, generator=drawn, dtype=torch.float64)
            return {"error": best_weights_error(heads, heads), "stderr": 0.0}
        found = random_heads_error(self.width, self.rank, self.heads, Values.IDENTITY, self.seed)
        return {"error": found.mean, "stderr": found.stderr}
