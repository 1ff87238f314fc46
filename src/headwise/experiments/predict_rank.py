"""What rank does theory predict for a random head of this size?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from headwise.runs import Row, Spec


class PredictRank(Spec, frozen=True):
    """The barrier, the finite law and its corrected form, and the ε-rank of a softmax head.

    ``width`` is the width of the N(0, 1) inputs and weights, which set the size of the logits.

    >>> row = PredictRank(tokens=100, head_dim=64).ask()
    >>> round(row["law"], 3), round(row["barrier"], 3)
    (0.593, 0.634)
    """

    kind: Literal["predict_rank"] = "predict_rank"
    revision: Literal[1] = 1
    tokens: Annotated[int, Field(ge=2)]
    head_dim: PositiveInt
    width: PositiveInt = 384
    epsilon: PositiveFloat = 1e-8
    seed: int = 0

    def ask(self) -> Row:
        """Return ratios of rank to length."""
        from headwise.theory.expected import expected_rank
        from headwise.theory.law_formula import barrier_ratio, law_share
        from headwise.theory.softening import softmax_ratio

        found = expected_rank(self.tokens, self.head_dim, seed=self.seed)
        # N(0, 1) inputs of width d through N(0, 1) weights: q·k grows by d, so T shrinks by it.
        heat = self.head_dim**0.5 / self.width
        soft = softmax_ratio(self.tokens, self.head_dim, heat, self.epsilon)
        return {
            "barrier": float(barrier_ratio(self.tokens)),
            "law": float(law_share(self.tokens, self.head_dim)),
            "ratio": found.ratio,
            "error": found.error,
            "method": found.method,
            "softmax_ratio": soft.ratio,
            "softmax_error": soft.error,
            "softmax_valid": soft.valid,
        }
