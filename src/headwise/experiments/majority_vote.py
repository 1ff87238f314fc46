"""What is the error of a majority of H random rank-one heads, by formula and by simulation?"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt, model_validator

from headwise.randomness import stream
from headwise.runs import Row, Spec


class MajorityVote(Spec, frozen=True):
    """The vote of an odd number of heads on the nearer of two orthonormal neighbours.

    The layer is drawn ``layers`` times and shown ``samples`` pairs each time; 0 layers skip the
    simulation.

    >>> row = MajorityVote(width=4, heads=5, layers=2, samples=100).ask()
    >>> round(row["formula"], 3), 0 < row["simulated"] < 1
    (0.519, True)
    """

    kind: Literal["majority_vote"] = "majority_vote"
    revision: Literal[1] = 1
    width: Annotated[int, Field(ge=2)]
    heads: PositiveInt
    layers: Annotated[int, Field(ge=0)] = 32
    samples: PositiveInt = 500
    seed: int = 0

    @model_validator(mode="after")
    def _cannot_tie(self) -> MajorityVote:
        if self.heads % 2 == 0:
            raise ValueError(
                f"expected an odd number of heads, got {self.heads}, which can tie; pass one more"
            )
        return self

    def ask(self) -> Row:
        """Return formula and asymptote; if simulated, also the mean over layers and its error."""
        from headwise.theory.nearest import majority_vote_error, majority_vote_limit

        row: Row = {
            "formula": majority_vote_error(self.width, self.heads),
            "limit": majority_vote_limit(self.width, self.heads),
        }
        return row | (self._simulated() if self.layers else {})

    def _simulated(self) -> Row:
        from headwise.spectra import Estimate

        # Pairs seen by one layer share its heads, so only layers are independent.
        errors = torch.stack([self._error_of_layer(number) for number in range(self.layers)])
        found = Estimate.of(errors)
        return {"simulated": found.mean, "stderr": found.stderr}

    def _error_of_layer(self, number: int) -> torch.Tensor:
        from headwise.attention.constructions import TwoLayerVote
        from headwise.randomness import stream_seed
        from headwise.theory.nearest import neighbours

        layer = TwoLayerVote(self.width, self.heads, stream_seed(self.seed, "layer", number))
        pairs, y = neighbours(self.width, self.samples, stream(self.seed, "pairs", number))
        nearer = (pairs @ y.unsqueeze(-1)).squeeze(-1).argmax(-1)
        target = pairs[torch.arange(len(pairs)), nearer]
        return (layer(pairs, y) - target).square().sum(-1).mean()
