"""What rank do attention matrices have at initialisation? Measures every head and batch item."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from headwise.data.synthetic import InputLaw
from headwise.experiments.first_projections import (
    Beginning,
    FirstLayer,
    shared_beginning,
    told_of,
)
from headwise.experiments.initial_stack import (
    InitialLayer,
    StackShape,
    WeightLaw,
)
from headwise.experiments.rank_statistics import RankStatistics
from headwise.runs import Row, Spec, device
from headwise.spectra import count

#: Layers are numbered from 1.
LayerNumbers = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]


def refuse_wide_head(head_dim: int, width: int, heads: int | None) -> None:
    """Refuse a head dimension above the width, unless the number of heads is given."""
    if heads is None and head_dim > width:
        raise ValueError(
            f"expected a head dimension of at most the width {width}, got {head_dim}; pass a "
            "smaller one, or the number of heads"
        )


class MeasureRank(Spec, frozen=True):
    """Rank over length of attention at initialisation, one row for each layer asked for.

    The defaults are the rank paper's: width 384, 100 tokens, batch 32, everything N(0, 1),
    T = √d_h, ε = 1e-8, float64. ``shift`` is added to every entry of the inputs. Without ``heads``
    there are width // head_dim heads.

    >>> row = MeasureRank(width=8, head_dim=4, tokens=5, batch=2).ask()[0]
    >>> row["count"], 0 < row["mean"] <= 1
    (4, True)
    """

    kind: Literal["measure_rank"] = "measure_rank"
    revision: Literal[1] = 1
    head_dim: PositiveInt
    width: PositiveInt = 384
    heads: PositiveInt | None = None
    tokens: PositiveInt = 100
    batch: PositiveInt = 32
    inputs: InputLaw = "normal(0,1)"
    shift: float = 0.0
    weights: WeightLaw = "normal(0,1)"
    temperature: PositiveFloat | None = None
    epsilon: PositiveFloat = 1e-8
    layers: LayerNumbers = (1,)
    mlp_width: Annotated[int, Field(ge=0)] = 512
    skip: bool = True
    norm: Literal["post", "pre", "none"] = "post"
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    @model_validator(mode="after")
    def _has_a_head(self) -> MeasureRank:
        refuse_wide_head(self.head_dim, self.width, self.heads)
        return self

    def ask(self) -> list[Row]:
        """Return one row per layer, in the order of the layers."""
        (tokens, told, projections), rows = self._begin(), []
        for number in range(1, max(self.layers) + 1):
            layer = InitialLayer(self._shape(), self.seed, number, device(), projections)
            if number in self.layers:
                rows.append({"layer": number, **self._measured(layer, tokens), **told})
            if number < max(self.layers):
                tokens, projections = layer(tokens), None
                told = told_of(tokens)
        return rows

    def _begin(self) -> Beginning:
        """Return the inputs and the part of the first layer that specs can share."""
        heads = self.heads or self.width // self.head_dim
        sizes, inner = (self.batch, self.tokens, self.width), heads * self.head_dim
        first = FirstLayer(self.inputs, self.shift, sizes, inner, self.weights, self.seed)
        if device() == "cpu" and self.norm != "pre" and first.kept:
            return shared_beginning(first)
        tokens = first.tokens().to(device())
        return Beginning(tokens, told_of(tokens), None)

    def _shape(self) -> StackShape:
        return StackShape(
            width=self.width,
            head_dim=self.head_dim,
            heads=self.heads or self.width // self.head_dim,
            mlp_width=self.mlp_width,
            weights=self.weights,
            temperature=self.temperature,
            skip=self.skip,
            norm=self.norm,
        )

    def _measured(self, layer: InitialLayer, tokens: torch.Tensor) -> Row:
        found, squares, entries = RankStatistics(columns=self.tokens), 0.0, 0
        for part in layer.logits(tokens):
            found.add(count(part, self.epsilon))
            flat = part.values.flatten()
            squares += float(flat.dot(flat))
            entries += len(flat)
        return {
            **found.row(),
            "logit_size": (squares / entries) ** 0.5,
        }
