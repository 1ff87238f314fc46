"""How far are embedded image patches from orthonormal? ‖C − I‖_F / n² of their cosines C."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from headwise.experiments.orthonormality import distance_from_orthonormal, mean_and_spread
from headwise.experiments.real_batches import ImageName
from headwise.experiments.real_rank import ImageRank, Start
from headwise.runs import Row, Spec


class ImageOrthonormality(Spec, frozen=True):
    """The rank paper's measure for image patches embedded in ``head_dim`` dimensions.

    >>> row = ImageOrthonormality(dataset="digits", patch=2, head_dim=16, batch=8).ask()
    >>> row["tokens"], 0 < row["mean"] < 1 / 16
    (16, True)
    """

    kind: Literal["image_orthonormality"] = "image_orthonormality"
    revision: Literal[1] = 1
    dataset: ImageName
    head_dim: PositiveInt
    patch: PositiveInt = 4
    batch: Annotated[int, Field(ge=2)] = 32
    start: Start = "normal(0,1)"
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    def ask(self) -> Row:
        """Return mean and spread of the measure over the batch."""
        vectors, stack, facts = self._embedding().entered()
        if stack is not None:
            vectors = stack.position.embed(vectors)
        found = mean_and_spread(distance_from_orthonormal(vectors))
        return {**found, "tokens": vectors.shape[1], **facts}

    def _embedding(self) -> ImageRank:
        """Return the rank spec that embeds the same patches in as many dimensions."""
        shared = self.model_dump(include={"dataset", "head_dim", "patch", "batch", "start", "seed"})
        return ImageRank(width=self.head_dim, heads=1, **shared)
