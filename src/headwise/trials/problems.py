"""What a trial trains on: data with labels, or text alone, and the built-in models for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from headwise.attention import FanIn, LearnedAdditive
from headwise.data import Batch, NextToken, Samples, Task
from headwise.data.samples import Numbers
from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry
from headwise.models import (
    Decoder,
    EncoderStack,
    Images,
    Style,
    TextClassifier,
    VectorClassifier,
    ViTClassifier,
)
from headwise.randomness import stream
from headwise.trials.constants import constant_error, constant_loss
from headwise.whole_files import read_checkpoint, write_checkpoint

Kind = Literal["images", "vectors", "ids", "next-token"]

#: The share of labelled samples that is held out for the score.
HELD_OUT = 0.3

#: The most test samples of a look: scores are taken often.
MOST_TESTED = 1000


@dataclass(frozen=True, eq=False)
class Problem:
    """Data and the frame of the models that learn it; only the geometry is left open.

    Attributes:
        kind: What the inputs are.
        inputs: Images (b, channels, side, side), vectors (b, n, c), ids (b, n), or for
            "next-token" also ids (n).
        labels: Class numbers (b), or floating-point numbers (b) to predict; None for "next-token".
        lengths: How many of each row of ids are real; None if all are.
        vocabulary: Number of token ids.
        length: Tokens that a model for "next-token" sees.
        patch: Side of the square patches of images.
        depth: Layers of the model.
    """

    kind: Kind
    inputs: Tensor
    labels: Tensor | None = None
    lengths: Tensor | None = None
    vocabulary: int = 0
    length: int = 0
    patch: int = 0
    depth: int = 2

    def __post_init__(self) -> None:
        if self.kind != "next-token":
            _refuse_odd_inputs(self.inputs)
            _refuse_odd_labels(self.inputs, self.labels)

    @property
    def regresses(self) -> bool:
        """Whether labels are numbers to predict."""
        return self.labels is not None and self.labels.is_floating_point()

    @property
    def measure(self) -> str:
        """What the score is; lower is better."""
        if self.kind == "next-token":
            return "loss"
        return "relative error" if self.regresses else "error rate"

    @property
    def constant(self) -> float:
        """The score of the best constant prediction."""
        if self.labels is None:
            return constant_loss([self.inputs])
        if self.regresses:
            return constant_loss(self._samples("cpu").held_out.targets)
        return constant_error(self.labels)

    @property
    def advised_task(self) -> Literal["next-token", "classify", "regress"]:
        """The task as ``advise`` names it."""
        if self.regresses:
            return "regress"
        return "next-token" if self.kind == "next-token" else "classify"

    def task(self, device: str) -> Task:
        """Where batches come from; the test part is the same for every seed and geometry."""
        if self.kind == "next-token":
            ids = self.inputs.to(device)
            if ids.dim() == 2:
                return NextToken.of_rows(ids)
            return NextToken.of_text(ids, self.length)
        return self._samples(device)

    def build(self, geometry: HeadGeometry, seed: int) -> nn.Module:
        """The model of a geometry."""
        if self.kind == "images":
            return self._image_model(geometry, seed)
        if self.kind == "vectors":
            tokens, channels = self.inputs.shape[1:]
            stack = self._stack(geometry, tokens, seed)
            return VectorClassifier(stack, channels, self.outputs, seed)
        tokens = self.length if self.inputs.dim() == 1 else int(self.inputs.shape[1])
        stack = self._stack(geometry, tokens, seed)
        if self.kind == "next-token":
            return Decoder(stack, self.vocabulary, seed)
        return TextClassifier(stack, self.vocabulary, self.outputs, seed)

    @property
    def outputs(self) -> int:
        """How many classes there are; one output if labels are numbers to predict."""
        assert self.labels is not None
        if self.regresses:
            return 1
        return int(self.labels.max()) + 1

    @property
    def identity(self) -> str:
        """A digest of the data and the frame: the same problem has the same digest."""
        found = hashlib.sha256()
        for part in fields(self):
            value = getattr(self, part.name)
            found.update(part.name.encode())
            if isinstance(value, Tensor):
                found.update(f"{tuple(value.shape)} {value.dtype}".encode())
                found.update(value.contiguous().numpy().tobytes())
            else:
                found.update(repr(value).encode())
        return found.hexdigest()[:20]

    def write(self, path: Path) -> None:
        """Write the problem where other processes can read it."""
        write_checkpoint(path, {part.name: getattr(self, part.name) for part in fields(self)})

    @classmethod
    def read(cls, path: Path) -> Problem:
        """Read what ``write`` wrote."""
        hint = "choose a folder that every worker can read"
        content = read_checkpoint(path, hint=hint)
        try:
            return cls(**content)
        except TypeError:
            raise UnreadableFileError(f"{path} holds no data of a trial", hint=hint) from None

    def _samples(self, device: str) -> Samples:
        """A random part for training, the rest for the score."""
        assert self.labels is not None
        count = len(self.labels)
        order = torch.randperm(count, generator=stream(0, "trial split"))
        kept = count - max(1, round(HELD_OUT * count))
        inputs, labels = self.inputs, self.labels
        if self.kind == "vectors":
            inputs = _standardised(inputs, order[:kept])
        elif inputs.is_floating_point():
            inputs = ((inputs - inputs.mean()) / inputs.std().clamp(min=1e-12)).float()
        if self.regresses:
            # In these units the squared error is a share of the variance of the labels.
            labels = ((labels - labels.mean()) / labels.std(correction=0)).float()
        given = (inputs,) if self.lengths is None else (inputs, self.lengths)
        training, held_out = (
            Batch(tuple(t[part].to(device) for t in given), (labels[part].to(device),))
            for part in (order[:kept], order[kept:][:MOST_TESTED])
        )
        return (Numbers if self.regresses else Samples)(training, held_out)

    def _image_model(self, geometry: HeadGeometry, seed: int) -> nn.Module:
        channels, size = self.inputs.shape[1], self.inputs.shape[-1]
        images = Images(size=size, patch=self.patch, channels=channels)
        return ViTClassifier(self._stack(geometry, images.tokens, seed), images, self.outputs, seed)

    def _stack(self, geometry: HeadGeometry, tokens: int, seed: int) -> EncoderStack:
        return EncoderStack(
            geometry,
            LearnedAdditive(tokens, geometry.width, seed),
            depth=self.depth,
            mlp_width=2 * geometry.width,
            style=Style(initialisation=FanIn(seed)),
        )


def _standardised(vectors: Tensor, training: Tensor) -> Tensor:
    """Give each channel mean 0 and variance 1 on the training part; constant channels become 0."""
    seen = vectors[training].double()
    mean, spread = seen.mean((0, 1)), seen.std((0, 1), correction=0)
    return ((vectors - mean) / spread.where(spread > 0, 1.0)).float()


def _refuse_odd_inputs(inputs: Tensor) -> None:
    square = inputs.dim() != 4 or inputs.shape[2] == inputs.shape[3]
    if inputs.dim() not in (2, 3, 4) or not square or 0 in inputs.shape:
        raise BadInputError(
            f"expected images (b, channels, side, side), vectors (b, n, c) or ids (b, n), got "
            f"shape {tuple(inputs.shape)}",
            hint="reshape the inputs, or pass `build` and `batches` for your own model",
        )


def _refuse_odd_labels(inputs: Tensor, labels: Tensor | None) -> None:
    if labels is None or labels.shape != inputs.shape[:1]:
        got = "none" if labels is None else f"labels of shape {tuple(labels.shape)} and type "
        kind = "" if labels is None else str(labels.dtype).removeprefix("torch.")
        raise BadInputError(
            f"expected {len(inputs)} class numbers, got {got}{kind}",
            hint="pass one whole number for each input, or a folder with a subfolder per class; "
            "for regression one number each and `task='regress'`",
        )
    if labels.is_floating_point():
        if len(labels) < 10 or not labels.isfinite().all() or labels.min() == labels.max():
            raise BadInputError(
                f"expected at least 10 finite and different numbers to predict, got {len(labels)} "
                f"from {float(labels.min()):g} to {float(labels.max()):g}",
                hint="pass more labelled data, and leave out samples whose label is NaN",
            )
    elif len(labels) < 10 or len(labels.unique()) < 2 or int(labels.min()) < 0:
        raise BadInputError(
            f"expected at least 10 samples of 2 classes numbered from 0, got {len(labels)} of "
            f"{len(labels.unique())}, the least of them {int(labels.min())}",
            hint="pass more labelled data, with classes numbered from 0",
        )
