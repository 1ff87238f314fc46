"""How well does a trained model regress in context, with a given number of heads at fixed width?"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from headwise.attention import FanIn, HeadGeometry, LearnedAdditive
from headwise.data import InContext
from headwise.data.incontext import PAPER_SHARE
from headwise.experiments.learning_curves import seed_rows
from headwise.experiments.training_run import TrainingRun
from headwise.models import EncoderStack, InContextRegressor, Style
from headwise.runs import Row
from headwise.training import AdamW, Trained


class TrainInContext(TrainingRun, frozen=True):
    """In-context linear regression: x and w from N(0, I), y = wᵀx, a prediction at every prefix.

    The model is causal, with a norm before each part, learned positions and an MLP of four times
    the width. The curriculum grows from 5 to all dimensions and from 11 to all points over the
    first ``curriculum`` of the steps. ``test_score`` is the squared error at the last point; a
    model that learned nothing scores the number of dimensions.

    >>> spec = TrainInContext(
    ...     dimensions=2, points=3, width=4, layers=1, heads=2, steps=3, batch=4, evaluation=8
    ... )
    >>> row = spec.ask()[0]
    >>> row["trivial"], row["test_score"] > 0
    (2.0, True)
    """

    stacks_over: ClassVar[tuple[str, ...]] = ("heads",)

    kind: Literal["train_incontext"] = "train_incontext"
    revision: Literal[1] = 1
    heads: PositiveInt
    dimensions: PositiveInt = 20
    points: PositiveInt = 41
    width: PositiveInt = 48
    layers: PositiveInt = 12
    steps: PositiveInt = 500_000
    batch: PositiveInt = 64
    learning_rate: PositiveFloat = 1e-4
    evaluation: PositiveInt = 2048
    curriculum: Annotated[float, Field(gt=0, le=1)] = PAPER_SHARE

    @model_validator(mode="after")
    def _heads_divide(self) -> TrainInContext:
        if self.width % self.heads:
            raise ValueError(
                f"expected heads that divide the width {self.width}, got {self.heads}; pass one of "
                "its divisors"
            )
        return self

    @property
    def task(self) -> InContext:
        """Return the task, with its curriculum fitted to the length of the run."""
        return InContext(self.dimensions, self.points).for_steps(self.steps, self.curriculum)

    def more_settings(self) -> dict[str, Any]:
        """Return the usual constants of Adam."""
        return {"optimiser": AdamW(betas=(0.9, 0.999))}

    def rows_of(self, done: Trained) -> list[Row]:
        """Return one row per seed."""
        # Without examples the best prediction is 0; its squared error E y² is ``dimensions``.
        return [row | {"trivial": float(self.dimensions)} for row in seed_rows(done)]

    def build(self, seed: int) -> InContextRegressor:
        """Build the model; its initial weights depend only on the seed."""
        stack = EncoderStack(
            HeadGeometry.standard(self.width, heads=self.heads),
            LearnedAdditive(2 * self.points, self.width, seed),
            depth=self.layers,
            mlp_width=4 * self.width,
            style=Style(initialisation=FanIn(seed)),
        )
        return InContextRegressor(stack, self.dimensions, seed)
