"""What rank do attention matrices have on real data, in a model at initialisation?

"At initialisation" has two readings. ``normal(0,1)`` is the encoder of the rank paper's section 2.1
after an embedding: every weight N(0, 1), no biases, no positions, norms after each part.
``model`` is the classifier that ``headwise.models.rank_paper`` trains, before training.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from headwise.attention import HeadGeometry
from headwise.attention.scores import logits
from headwise.data import patches
from headwise.experiments.first_projections import told_of
from headwise.experiments.initial_stack import InitialLayer, StackShape
from headwise.experiments.measure_rank import LayerNumbers, refuse_wide_head
from headwise.experiments.rank_statistics import RankStatistics
from headwise.experiments.real_batches import (
    ImageName,
    TextName,
    distinct_share,
    draw_images,
    draw_texts,
)
from headwise.models.classifiers import Images
from headwise.models.rank_paper import TextModel, VisionModel
from headwise.models.transformer import Block, EncoderStack
from headwise.randomness import stream
from headwise.runs import Row, Spec, device
from headwise.spectra import LogWeights, count

#: The two readings of "at initialisation".
Start = Literal["normal(0,1)", "model"]


class Entered(NamedTuple):
    """Tokens that enter the first layer, the model's own stack if any, and facts for the rows."""

    tokens: Tensor
    stack: EncoderStack | None
    facts: Row


class Layer(NamedTuple):
    """The tokens that enter a layer, and its logits as (heads, batch, n, n), some heads at once."""

    tokens: Tensor
    logits: Iterator[LogWeights]


class RealRank(Spec, frozen=True):
    """Rank over length of a real mini-batch's attention matrices, one row per layer."""

    head_dim: PositiveInt
    width: PositiveInt = 384
    heads: PositiveInt | None = None
    batch: PositiveInt = 32
    start: Start = "normal(0,1)"
    layers: LayerNumbers = (1,)
    epsilon: PositiveFloat = 1e-8
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    @model_validator(mode="after")
    def _has_a_head(self) -> RealRank:
        refuse_wide_head(self.head_dim, self.width, self.heads)
        return self

    @abstractmethod
    def entered(self) -> Entered:
        """Draw the mini-batch and embed it."""

    @property
    def geometry(self) -> HeadGeometry:
        """The heads."""
        return HeadGeometry.free(
            self.width, self.heads or self.width // self.head_dim, self.head_dim
        )

    def ask(self) -> list[Row]:
        """Return one row per layer, in ascending order."""
        entered = self.entered()
        tokens = entered.tokens.to(device())
        found = _gaussian(self, tokens) if entered.stack is None else _own(entered.stack, tokens)
        rows = []
        for number in range(1, max(self.layers) + 1):
            layer = next(found)
            if number in self.layers:
                facts = {**told_of(layer.tokens), **entered.facts}
                rows.append({"layer": number, **self._measured(layer), **facts})
        return rows

    def _measured(self, layer: Layer) -> Row:
        tokens = layer.tokens.shape[1]
        found, squares, entries = RankStatistics(columns=tokens), 0.0, 0
        for part in layer.logits:
            found.add(count(part, self.epsilon))
            squares += float(part.values.square().sum())
            entries += part.values.numel()
        return {**found.row(), "tokens": tokens, "logit_size": (squares / entries) ** 0.5}


class ImageRank(RealRank, frozen=True):
    """Rank on the patches of images. The reading ``model`` adds a class token and positions.

    >>> (row,) = ImageRank(dataset="digits", patch=2, width=8, head_dim=4, batch=2).ask()
    >>> row["tokens"], row["count"], row["available"]
    (16, 4, 1797)
    """

    kind: Literal["image_rank"] = "image_rank"
    revision: Literal[1] = 1
    dataset: ImageName
    patch: PositiveInt = 4

    def entered(self) -> Entered:
        """Embed the patches."""
        images, available = draw_images(self.dataset, self.batch, self.seed)
        cut = patches(images, self.patch)
        facts = {"distinct": distinct_share(cut), "available": available}
        if self.start == "normal(0,1)":
            return Entered(cut @ self._embedding(cut.shape[-1]), None, facts)
        sizes = Images(size=images.shape[-1], patch=self.patch, channels=images.shape[1])
        model = VisionModel(self.width, max(self.layers), images=sizes)
        built = model.build(self.geometry, self.seed).double().requires_grad_(False)
        return Entered(built.tokens(images), built.stack, facts)

    def _embedding(self, inputs: int) -> Tensor:
        generator = stream(self.seed, "embedding")
        return torch.randn(inputs, self.width, generator=generator, dtype=torch.float64)


class TextRank(RealRank, frozen=True):
    """Rank on the words of texts, all of the same length, so that there is no padding.

    >>> (row,) = TextRank(dataset="digits", tokens=20, width=8, head_dim=4, batch=2).ask()
    >>> row["tokens"], row["count"]
    (20, 4)
    """

    kind: Literal["text_rank"] = "text_rank"
    revision: Literal[2] = 2
    dataset: TextName
    tokens: Annotated[int, Field(ge=2)] = 256

    def entered(self) -> Entered:
        """Embed the words; both readings start with N(0, 1) vectors."""
        ids, words, available = draw_texts(self.dataset, self.batch, self.tokens, self.seed)
        facts = {"distinct": distinct_share(ids), "available": available}
        if self.start == "normal(0,1)":
            generator = stream(self.seed, "embedding")
            table = torch.randn(words, self.width, generator=generator, dtype=torch.float64)
            return Entered(table[ids], None, facts)
        model = TextModel(self.width, max(self.layers), words=words, length=self.tokens)
        built = model.build(self.geometry, self.seed).double().requires_grad_(False)
        return Entered(built.embedding(ids), built.stack, facts)


def _gaussian(spec: RealRank, tokens: Tensor) -> Iterator[Layer]:
    """Yield layers of N(0, 1) weights."""
    geometry = spec.geometry
    shape = StackShape(geometry.width, geometry.qk_rank, geometry.heads)
    for number in range(1, max(spec.layers) + 1):
        layer = InitialLayer(shape, spec.seed, number, device())
        yield Layer(tokens, layer.logits(tokens))
        tokens = layer(tokens)


def _own(stack: EncoderStack, tokens: Tensor) -> Iterator[Layer]:
    """Yield the blocks of a model; tokens are those that attention reads, after its norm."""
    stack = stack.to(device())
    tokens = stack.position.embed(tokens)
    for block in stack.blocks:
        assert isinstance(block, Block)
        read = block.attention_norm(tokens)
        heads = block.attention.heads(read)
        pairs = zip(heads.queries.unbind(1), heads.keys.unbind(1), strict=True)
        yield Layer(
            read, (logits(q[None], k[None], temperature=heads.temperature) for q, k in pairs)
        )
        tokens = block(tokens)
