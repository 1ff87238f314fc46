"""The runs on real data: what is trained on which set, and how.

``RUNS`` names every run: a plan, and the geometries that are trained by it. All but those that
judge the advice answer exhibits of the rank paper.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.packed_data import read

from headwise.attention import HeadGeometry
from headwise.data import EpochTask, Labelled
from headwise.data.classification import Source, image_task, text_task
from headwise.models.rank_paper import TextModel, VisionModel, fixed_heads, fixed_width
from headwise.training import AdamW, Ensemble, Settings
from headwise.training.precision import products, rounded
from headwise.training.replay import replayed

#: Samples at a time when a part is examined, as in the paper.
EVALUATION_BATCH = 1024

Model = VisionModel | TextModel


@dataclass(frozen=True)
class Plan:
    """How a set is trained; the same for every geometry."""

    dataset: str
    model: Model
    epochs: int
    batch: int = 128
    rate: float = 1e-3
    warm_up_epochs: float = 5.0
    weight_decay: float = 5e-5
    betas: tuple[float, float] = (0.9, 0.999)
    label_smoothing: float = 0.1


def _vision(dataset: str, width: int, epochs: int, **changes: Any) -> Plan:
    classes = 100 if dataset == "cifar100" else 10
    return Plan(dataset, VisionModel(width=width, classes=classes, **changes), epochs)


#: The end of the names of runs that no exhibit asks for: they judge the advice.
ADVISED = "-advised"


def advised_splits() -> list[HeadGeometry]:
    """The usual head dimension of 64 at width 192, the advised one of 8, and half of it."""
    return [HeadGeometry.standard(192, heads=heads) for heads in (3, 24, 48)]


def _runs() -> dict[str, tuple[Plan, list[HeadGeometry]]]:
    found: dict[str, tuple[Plan, list[HeadGeometry]]] = {}
    # The epochs of scale gpu in papers/rank2026/recipes.py: a test holds them equal.
    for dataset, epochs in (("cifar10", 58), ("cifar100", 100), ("svhn", 100)):
        for width in (192, 384):
            found[f"{dataset}-{width}"] = (_vision(dataset, width, epochs), fixed_width(width))
        both = [g for heads in (4, 8) for g in fixed_heads(192, heads)]
        found[f"{dataset}-heads"] = (_vision(dataset, 192, epochs), both)
        found[f"{dataset}{ADVISED}"] = (_vision(dataset, 192, epochs), advised_splits())
    text = Plan("imdb", TextModel(), epochs=10, batch=64, rate=3e-4, warm_up_epochs=1.0)
    found["imdb"] = (text, fixed_heads(128, 8, (2, 3, 4, 8, 16)))
    return found


RUNS = _runs()


def load(name: str, folder: Path, device: str, most: int | None = None) -> EpochTask:
    """A packed set as a task, on its device; ``most`` samples of each part for a trial."""
    arrays = read(name, folder, whole=most is None)
    source = Source(*(_labelled(arrays, part, most) for part in ("train", "test")))
    return text_task(source, device) if name == "imdb" else image_task(name, source, device)


def _labelled(arrays: dict[str, Any], part: str, most: int | None) -> Labelled:
    names = [f"{kind}_{part}" for kind in "xn" if f"{kind}_{part}" in arrays]
    if f"x_{part}" not in names:  # a trial before the test images arrived
        names, part = ["x_train"], "train"
    have = len(arrays[names[0]])
    wanted = min(most or have, have)
    # At equal distances: the reviews come sorted by class.
    places = np.arange(wanted) * have // wanted
    inputs = [torch.from_numpy(_signed(arrays[name][places])) for name in names]
    return Labelled(tuple(inputs), torch.from_numpy(arrays[f"y_{part}"][places]).long())


def _signed(array: Any) -> Any:
    return array.astype("int32") if array.dtype == "uint16" else array


def stackable(geometries: Sequence[HeadGeometry]) -> list[list[HeadGeometry]]:
    """Geometries whose parameters have the same shapes, the largest first."""
    found: dict[tuple[int, int], list[HeadGeometry]] = {}
    for geometry in geometries:
        found.setdefault((geometry.width, geometry.heads * geometry.qk_rank), []).append(geometry)
    return [found[key] for key in sorted(found, reverse=True)]


def settings_of(plan: Plan, task: EpochTask, given: argparse.Namespace) -> Settings:
    """The settings of a plan on a device."""
    return Settings.for_epochs(
        len(task.parts.train.labels),
        epochs=plan.epochs,
        batch=plan.batch,
        warm_up_epochs=plan.warm_up_epochs,
        seeds=given.seeds,
        learning_rates=(plan.rate,),
        precision=given.precision,
        evaluation=len(task.parts.validation.labels),
        device=given.device,
        optimiser=AdamW(plan.betas, plan.weight_decay),
        execution=given.execution,
    )


def ensemble_of(
    plan: Plan, geometries: Sequence[HeadGeometry], task: EpochTask, settings: Settings
) -> Ensemble:
    """All seeds of some geometries."""
    builders = {geometry_name(own): partial(plan.model.build, own) for own in geometries}
    return Ensemble(builders, task, settings)


def geometry_name(geometry: HeadGeometry) -> str:
    """Heads and head dimension, in words."""
    return f"{geometry.heads} heads of {geometry.qk_rank}"


def stepper(ensemble: Ensemble) -> Callable[[int], None]:
    """A step by its number: a replayed graph on a GPU, plain calls elsewhere."""
    advance = ensemble.advance
    if ensemble.settings.replayed:
        generators = ensemble.noise.generators
        advance = replayed(ensemble.advance, ensemble.state, generators)

    def take(step: int) -> None:
        ensemble.noise.prepare(step)
        advance()

    return take


@torch.no_grad()
def accuracy(ensemble: Ensemble, part: Labelled) -> list[float]:
    """The share of right answers of every member."""
    parameters = ensemble.layout.cut(ensemble.state.flat)
    members, settings = len(ensemble.members), ensemble.settings
    right = torch.zeros(members, device=settings.device)
    with products(settings), rounded(settings):
        for places in torch.arange(len(part.labels)).split(EVALUATION_BATCH):
            piece = part.at(places.to(part.labels.device))
            inputs = ensemble.task.shown(piece).inputs
            spread = tuple(t.expand(members, *t.shape) for t in inputs)
            right += (ensemble.forward(parameters, spread).argmax(-1) == piece.labels).sum(1)
    return (right / len(part.labels)).tolist()


def wait(device: str) -> None:
    """Until a GPU has done what it was told."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def shortened(plan: Plan, given: argparse.Namespace) -> Plan:
    """The plan with what was asked for on the command line."""
    if given.tiny:
        small = {"depth": 2, "mlp_width": 16}
        plan = replace(plan, model=replace(plan.model, **small), batch=16)
    wanted = {"epochs": given.epochs, "rate": given.rate}
    return replace(plan, **{name: own for name, own in wanted.items() if own is not None})
