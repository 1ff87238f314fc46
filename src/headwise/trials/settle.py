"""Settle the question by training: candidates side by side, stopped when it is clear."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from headwise.attention import FanIn, LearnedAdditive
from headwise.data import Batch, Samples
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry
from headwise.models import EncoderStack, Images, Style, TextClassifier, ViTClassifier
from headwise.progress import SILENT, Progress
from headwise.randomness import stream
from headwise.training import Settings
from headwise.trials.candidates import named, splits, usual
from headwise.trials.ensembles import Build, EnsembleRunner
from headwise.trials.own_models import OwnRunner, OwnTraining, Pair
from headwise.trials.prediction import refuse_one_seed
from headwise.trials.race import race
from headwise.trials.result import Trial, answer

#: The share of the samples that is held out for the score.
HELD_OUT = 0.3


def trial(
    inputs: Tensor,
    labels: Tensor,
    *,
    width: int = 64,
    depth: int = 2,
    patch: int = 2,
    candidates: Sequence[HeadGeometry] | None = None,
    steps: int = 1000,
    batch: int = 32,
    rate: float | int = 3e-3,
    seeds: Sequence[int] = (0, 1, 2),
    minutes: float | int = math.inf,
    folder: Path | None = None,
    device: str = "cpu",
    progress: Progress = SILENT,
) -> Trial:
    """Train head geometries side by side on labelled data and say which is best.

    All candidates have the same seeds and the same data order. After each round the half that is
    least likely to win at the full length stops.

    Args:
        inputs: Images, shape (b, channels, side, side), or token ids, shape (b, n).
        labels: Class numbers, shape (b).
        width: Width of the built-in encoder.
        depth: Its number of layers.
        patch: Side of the square patches that images are cut into.
        candidates: Geometries to compare. Default: every split of the width, and the usual one.
        steps: The full length of training that the answer is about.
        batch: Samples of one step.
        rate: Largest learning rate.
        seeds: Seeds of weights and data order, two or more.
        minutes: Time limit; the answer then rests on extrapolation.
        folder: Where to keep checkpoints. A trial that was stopped goes on from there.
        device: "cpu" or "cuda".
        progress: Receives news of the work.

    Returns:
        The geometries with predicted scores and probabilities, best first.

    Raises:
        BadInputError: If the labels do not match, every candidate diverges, or the time does not
            suffice for one round.

    Example:
        >>> from headwise.data.images import digits
        >>> found = digits()
        >>> answer = trial(found.images[:200], found.labels[:200], width=8, steps=16, seeds=[0, 1])
        >>> sorted((e.geometry.heads, e.geometry.qk_rank) for e in answer.entrants)
        [(1, 8), (2, 4)]
    """
    refuse_one_seed(len(seeds))
    _refuse_odd_labels(inputs, labels)
    entrants = named(candidates or [*splits(width), usual(width)])
    task, shown = _samples(inputs, labels, device), inputs[:1]
    classes = int(labels.max()) + 1
    if inputs.dim() == 4:
        build = _image_builder(shown, patch, depth, classes)
    else:
        build = _text_builder(int(inputs.shape[1]), int(inputs.max()) + 1, depth, classes)
    settings = Settings(
        steps=steps,
        batch=batch,
        seeds=tuple(seeds),
        learning_rates=(rate,),
        evaluation=len(task.held_out.targets[0]),
        device=device,
        execution="eager",
    )
    runner = EnsembleRunner(entrants, build, task, settings, folder=folder)
    sizes = f"{tuple(inputs.shape)} {width} {depth} {patch} {list(entrants)} {settings}"
    standing = race(
        runner,
        list(entrants),
        steps,
        seconds=60 * minutes,
        path=None if folder is None else folder / "trial.json",
        identity=hashlib.sha256(sizes.encode()).hexdigest(),
        progress=progress,
    )
    return answer(standing, entrants, steps, "error rate")


def trial_of(
    build: Callable[[HeadGeometry], nn.Module],
    batches: Callable[[int], Iterable[Pair]],
    candidates: Sequence[HeadGeometry],
    *,
    training: OwnTraining,
    minutes: float | int = math.inf,
    folder: Path | None = None,
    progress: Progress = SILENT,
) -> Trial:
    """Train your own model with different head geometries and say which is best.

    Args:
        build: Returns a new model of a geometry; torch's random generator is seeded before.
        batches: Returns batches for a seed: pairs of inputs and targets, always in the same
            order for the same seed. Iterables that end are started again.
        candidates: Geometries to compare.
        training: Steps, learning rate, seeds and device.
        minutes: Time limit; the answer then rests on extrapolation.
        folder: Where to keep checkpoints. A trial that was stopped goes on from there.
        progress: Receives news of the work.

    Returns:
        The geometries with predicted losses and probabilities, best first.

    Raises:
        BadInputError: If ``build`` ignores the geometry, there are no batches, or every
            candidate diverges.

    Example:
        >>> def build(geometry):
        ...     inner = geometry.heads * geometry.qk_rank
        ...     return nn.Sequential(nn.Linear(4, inner), nn.Linear(inner, 4))
        >>> def batches(seed):
        ...     generator = torch.Generator().manual_seed(seed)
        ...     for _ in range(20):
        ...         x = torch.randn(8, 4, generator=generator)
        ...         yield x, x
        >>> candidates = [HeadGeometry.free(4, 1, rank) for rank in (1, 4)]
        >>> how = OwnTraining(steps=100, rate=0.03)
        >>> trial_of(build, batches, candidates, training=how).best.geometry.qk_rank
        4
    """
    entrants = named(candidates)
    runner = OwnRunner(entrants, build, batches, training, folder=folder)
    standing = race(
        runner,
        list(entrants),
        training.steps,
        seconds=60 * minutes,
        path=None if folder is None else folder / "trial.json",
        identity=f"{list(entrants)} {training}",
        progress=progress,
    )
    return answer(standing, entrants, training.steps, "loss")


def _refuse_odd_labels(inputs: Tensor, labels: Tensor) -> None:
    if inputs.dim() not in (2, 4):
        raise BadInputError(
            f"expected images (b, channels, side, side) or ids (b, n), got shape "
            f"{tuple(inputs.shape)}",
            hint="reshape the inputs, or pass your own model to trial_of()",
        )
    if labels.shape != inputs.shape[:1] or labels.is_floating_point():
        raise BadInputError(
            f"expected {len(inputs)} class numbers, got labels of shape {tuple(labels.shape)} "
            f"and type {str(labels.dtype).removeprefix('torch.')}",
            hint="pass one whole number for each input",
        )
    if len(labels) < 10 or len(labels.unique()) < 2:
        raise BadInputError(
            f"expected at least 10 samples of 2 classes, got {len(labels)} of "
            f"{len(labels.unique())}",
            hint="pass more labelled data",
        )


def _samples(inputs: Tensor, labels: Tensor, device: str) -> Samples:
    """A random part for training, the rest for the score."""
    order = torch.randperm(len(labels), generator=stream(0, "trial split"))
    kept = len(labels) - max(1, round(HELD_OUT * len(labels)))
    if inputs.is_floating_point():
        inputs = (inputs - inputs.mean()) / inputs.std().clamp(min=1e-12)
        inputs = inputs.float()
    parts = (order[:kept], order[kept:])
    training, held_out = (
        Batch((inputs[part].to(device),), (labels[part].to(device),)) for part in parts
    )
    return Samples(training, held_out)


def _stack(geometry: HeadGeometry, tokens: int, depth: int, seed: int) -> EncoderStack:
    position = LearnedAdditive(tokens, geometry.width, seed)
    style = Style(initialisation=FanIn(seed))
    return EncoderStack(geometry, position, depth=depth, mlp_width=2 * geometry.width, style=style)


def _image_builder(shown: Tensor, patch: int, depth: int, classes: int) -> Build:
    images = Images(size=shown.shape[-1], patch=patch, channels=shown.shape[1])
    return partial(_image_model, images, depth, classes)


def _image_model(
    images: Images, depth: int, classes: int, geometry: HeadGeometry, seed: int
) -> nn.Module:
    return ViTClassifier(_stack(geometry, images.tokens, depth, seed), images, classes, seed)


def _text_builder(length: int, vocabulary: int, depth: int, classes: int) -> Build:
    def build(geometry: HeadGeometry, seed: int) -> nn.Module:
        stack = _stack(geometry, length, depth, seed)
        return TextClassifier(stack, vocabulary, classes, seed)

    return build
