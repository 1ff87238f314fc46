"""How well does a trained encoder find farthest neighbours, with these heads of this rank?"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from headwise.data import FarthestNeighbour, trivial_error
from headwise.errors import BadInputError
from headwise.experiments.learned_forms import form_row
from headwise.experiments.learning_curves import seed_rows
from headwise.experiments.training_run import Protocol, TrainingRun, protocol_of
from headwise.models import NeighbourEncoder, NeighbourShape
from headwise.runs import Row
from headwise.training import Trained

#: Tokens used to fit the trivial baseline: enough for three digits.
BASELINE_TOKENS = 65_536


class TrainNeighbours(TrainingRun, frozen=True):
    """The heads paper's training task; models that differ only in their seed train together.

    Each layer has H = copies · width / rank heads. The protocol ``fixed`` repeats one set of
    ``sequences`` in the same order, ``fresh`` draws every batch again; test data are always new.
    There is one row per seed: training loss, best training loss, test loss, where it diverged, and
    the learning curve.

    >>> spec = TrainNeighbours(
    ...     width=4, tokens=3, rank=4, mlp_width=8, steps=4, batch=8, sequences=16, epoch=2
    ... )
    >>> [row["seed"] for row in spec.ask()], spec.heads
    ([0], 1)
    """

    stacks_over: ClassVar[tuple[str, ...]] = ("rank",)

    kind: Literal["train_neighbours"] = "train_neighbours"
    revision: Literal[1] = 1
    rank: PositiveInt
    width: Annotated[int, Field(ge=2)] = 64
    tokens: Annotated[int, Field(ge=2)] = 16
    layers: PositiveInt = 1
    copies: PositiveInt = 1
    positions: Literal["none", "additive", "concatenated"] = "none"
    mlp_width: PositiveInt = 2048
    protocol: Protocol = "fixed"
    sequences: PositiveInt = 25_600
    steps: PositiveInt = 100_000
    micro_batches: PositiveInt = 1

    @model_validator(mode="after")
    def _can_be_built(self) -> TrainNeighbours:
        try:
            _ = self.shape, self.settings("cpu")
        except BadInputError as error:
            # Check the precision on the machine that computes, not where the spec is written.
            if "precision" not in error.problem:
                raise ValueError(str(error)) from None
        return self

    @property
    def shape(self) -> NeighbourShape:
        """The sizes of the model."""
        return NeighbourShape(
            width=self.width,
            tokens=self.tokens,
            layers=self.layers,
            rank=self.rank,
            copies=self.copies,
            mlp_width=self.mlp_width,
            positions=self.positions,
        )

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""
        return self.shape.heads

    @property
    def task(self) -> FarthestNeighbour:
        """Return the farthest-neighbour task."""
        return FarthestNeighbour(self.width, self.tokens)

    def build(self, seed: int) -> NeighbourEncoder:
        """Build the encoder."""
        return self.shape.build(seed)

    def more_settings(self) -> dict[str, Any]:
        """Return the protocol, and the number of parts for batches that do not fit in memory."""
        protocol = protocol_of(self.protocol, self.sequences)
        return {"protocol": protocol, "micro_batches": self.micro_batches}

    def rows_of(self, done: Trained) -> list[Row]:
        """Return one row per seed."""
        rows, trivial = seed_rows(done), self._trivial()
        for number, row in enumerate(rows):
            row |= {"heads": self.heads, "trivial": trivial, **self._forms(done, number)}
        return rows

    def _trivial(self) -> float:
        sequences = max(64, BASELINE_TOKENS // self.tokens)
        return trivial_error(self.width, self.tokens, sequences=sequences)

    def _forms(self, done: Trained, member: int) -> Row:
        """Describe M of one layer without positions, where it is one matrix per head."""
        if self.layers > 1 or self.positions != "none":
            return {}
        names = (f"stack.blocks.0.attention.projection.{name}.weight" for name in ("query", "key"))
        queries, keys = (done.parameters[name][member] for name in names)
        cut = (self.heads, self.rank, self.width)
        return form_row(queries.view(cut), keys.view(cut))
