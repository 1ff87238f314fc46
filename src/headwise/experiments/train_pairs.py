"""How close do trained low-rank heads come to the lower bound on the nearer of two points?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt

from headwise.data import OrthonormalPairs
from headwise.experiments.learning_curves import seed_rows
from headwise.experiments.training_run import Protocol, TrainingRun, protocol_of
from headwise.models import CrossLayer, CrossShape
from headwise.runs import Row
from headwise.training import Trained


class TrainPairs(TrainingRun, frozen=True):
    """One layer of H softmax heads, no MLP and no norm, on two orthonormal points and a query.

    This is the task and the class of layers of the lower bound: query-key forms of rank ``rank``,
    value maps of rank ``value_rank`` (any matrix if None). There is one row per seed, as for
    ``TrainNeighbours``.

    >>> spec = TrainPairs(width=4, heads=2, steps=4, batch=8, epoch=2, evaluation=8)
    >>> [row["seed"] for row in spec.ask()]
    [0]
    """

    kind: Literal["train_pairs"] = "train_pairs"
    revision: Literal[1] = 1
    width: Annotated[int, Field(ge=2)]
    heads: PositiveInt
    rank: PositiveInt = 1
    value_rank: PositiveInt | None = None
    protocol: Protocol = "fresh"
    sequences: PositiveInt = 25_600
    steps: PositiveInt = 20_000
    evaluation: PositiveInt = 16_384

    @property
    def task(self) -> OrthonormalPairs:
        """Return the task: two orthonormal points and a query."""
        return OrthonormalPairs(self.width)

    def build(self, seed: int) -> CrossLayer:
        """Build the layer."""
        value_rank = self.value_rank or self.width
        return CrossShape(self.width, self.heads, self.rank, value_rank).build(seed)

    def more_settings(self) -> dict[str, Any]:
        """Return the protocol."""
        return {"protocol": protocol_of(self.protocol, self.sequences)}

    def rows_of(self, done: Trained) -> list[Row]:
        """Return one row per seed."""
        return seed_rows(done)
