"""trial: train candidates on data, or a person's own models, and answer which is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from headwise.errors import ParameterError
from headwise.geometry import HeadGeometry
from headwise.progress import SILENT, Progress
from headwise.training.device import refuse_absent
from headwise.trials.candidates import advised, name_of, named
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.named_functions import function_named
from headwise.trials.own_models import OwnRunner, OwnTraining, Pair
from headwise.trials.prediction import ADVISED_PRIOR, refuse_one_seed
from headwise.trials.problems import Problem
from headwise.trials.race import Limits, Runner, race
from headwise.trials.result import Trial, answer
from headwise.trials.sources import Frame, read_problem
from headwise.trials.workers import (
    PROBLEM,
    TrainBuiltIn,
    TrainOwn,
    WorkerRunner,
    cluster_of,
    settings_of,
)

#: The file of a trial's folder that says how far it has come.
STANDING = "trial.json"


def trial(
    inputs: Any,
    labels: Any = None,
    *,
    task: str | None = None,
    width: int = 64,
    depth: int = 2,
    patch: int | None = None,
    size: int | None = None,
    length: int | None = None,
    tokenizer: str | None = None,
    candidates: Sequence[HeadGeometry] | None = None,
    steps: int = 400,
    batch: int = 32,
    rate: float | int = 3e-3,
    seeds: Sequence[int] = (0, 1, 2),
    minutes: float | int = math.inf,
    folder: Path | str | None = None,
    device: str = "cpu",
    cluster: str | None = None,
    progress: Progress = SILENT,
) -> Trial:
    """Train head geometries side by side on your data and say which is best.

    All candidates have the same seeds and the same data order. After each round the half that is
    least likely to win at the full length stops.

    Args:
        inputs: "digits", an array or file of images (b, channels, side, side) or of token ids
            (b, n) or (n), a folder of images or texts with a subfolder for each class, a text or
            its file, or a list of texts.
        labels: Class numbers (b), a file of them, or names of classes. Text and ids without
            labels are predicted token by token.
        task: "classify" or "next-token"; by default "classify" if there are labels.
        width: Width of the built-in model.
        depth: Its number of layers.
        patch: Side of the square patches that images are cut into; by default up to 4, so that an
            image has at least 16 of them.
        size: Side that images of a folder are scaled to; 32 by default.
        length: Tokens of a sequence of text; 64 by default.
        tokenizer: "character", "word" or the path of a tokenizer.json.
        candidates: Geometries to compare. By default those that ``advise`` names, and the usual
            one.
        steps: The full length of training that the answer is about.
        batch: Samples of one step.
        rate: Largest learning rate.
        seeds: Seeds of weights and data order, two or more.
        minutes: Time limit; the answer then rests on extrapolation.
        folder: Where to keep checkpoints. A trial that was stopped goes on from there.
        device: "cpu" or "cuda".
        cluster: Train on a Dask cluster: "local", "local:4" or "tcp://HOST:PORT". Needs a folder
            that every worker can read and write.
        progress: Receives news of the work.

    Returns:
        The geometries with predicted scores and probabilities, best first.

    Raises:
        BadInputError: If the labels do not match, every candidate diverges, or the time does not
            suffice for one round.
        UnreadableFileError: If a file is missing or damaged.

    Example:
        >>> pair = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
        >>> answer = trial("digits", width=8, steps=8, seeds=[0, 1], candidates=pair)
        >>> sorted((e.geometry.heads, e.geometry.qk_rank) for e in answer.entrants)
        [(1, 8), (2, 4)]
    """
    refuse_one_seed(len(seeds))
    if cluster is None:
        refuse_absent(device)
    frame = Frame(task, depth, patch, size, length, tokenizer)
    problem = read_problem(inputs, labels, frame)
    entrants, prior = _entrants(problem, width, candidates, progress)
    place = None if folder is None else Path(folder)
    sizes = {"steps": steps, "batch": batch, "rate": float(rate)}
    identity = f"{problem.identity} {list(entrants)} {width} {tuple(seeds)} {sizes}"
    limits = Limits(60.0 * minutes, _standing(place), identity, progress, prior=prior)
    if cluster is None:
        settings = settings_of(problem, device, seeds, **sizes)
        runner = EnsembleRunner(
            entrants,
            problem.build,
            problem.task(device),
            settings,
            measure=problem.measure,
            path=None if place is None else place / "models.pt",
        )
        return _settled(runner, entrants, steps, limits, problem.measure)
    with closing(cluster_of(cluster, device, place)) as executor:
        assert place is not None
        problem.write(place / PROBLEM)
        spec = partial(TrainBuiltIn, folder=str(place.resolve()), problem=problem.identity)
        workers = WorkerRunner(entrants, partial(spec, seeds=tuple(seeds), **sizes), executor)
        return _settled(workers, entrants, steps, limits, problem.measure)


def trial_of(
    build: Callable[[HeadGeometry], nn.Module] | str,
    batches: Callable[[int], Iterable[Pair]] | str,
    candidates: Sequence[HeadGeometry],
    *,
    training: OwnTraining,
    minutes: float | int = math.inf,
    folder: Path | str | None = None,
    cluster: str | None = None,
    progress: Progress = SILENT,
) -> Trial:
    """Train your own model with different head geometries and say which is best.

    Args:
        build: Returns a new model of a geometry; torch's random generator is seeded before.
            A function, or its name as PACKAGE:FUNCTION.
        batches: Returns batches for a seed: pairs of inputs and targets, always in the same
            order for the same seed. Iterables that end are started again. A function, or its
            name as PACKAGE:FUNCTION.
        candidates: Geometries to compare.
        training: Steps, learning rate, seeds and device.
        minutes: Time limit; the answer then rests on extrapolation.
        folder: Where to keep checkpoints. A trial that was stopped goes on from there.
        cluster: Train on a Dask cluster: "local", "local:4" or "tcp://HOST:PORT". Needs a folder
            that every worker can read and write, and functions given by name.
        progress: Receives news of the work.

    Returns:
        The geometries with predicted losses and probabilities, best first.

    Raises:
        ParameterError: If parameters do not go together.
        BadInputError: If ``build`` ignores the geometry, there are no batches, or every
            candidate diverges.

    Example:
        >>> import torch
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
    place = None if folder is None else Path(folder)
    told = [one for one in (build, batches) if isinstance(one, str)]
    limits = Limits(
        60.0 * minutes, _standing(place), f"{list(entrants)} {training} {told}", progress
    )
    runner = OwnRunner(
        entrants,
        function_named(build) if isinstance(build, str) else build,
        function_named(batches) if isinstance(batches, str) else batches,
        training,
        folder=place,
    )
    if cluster is None:
        return _settled(runner, entrants, training.steps, limits, "loss")
    if not (isinstance(build, str) and isinstance(batches, str)):
        raise ParameterError(
            "expected build and batches as PACKAGE:FUNCTION for a cluster, got functions",
            hint="pass their names, so that workers can import them",
        )
    with closing(cluster_of(cluster, training.device, place)) as executor:
        assert place is not None
        spec = partial(TrainOwn, folder=str(place.resolve()), build=build, batches=batches)
        spec = partial(spec, **training.sizes())
        workers = WorkerRunner(entrants, spec, executor)
        return _settled(workers, entrants, training.steps, limits, "loss")


def _entrants(
    problem: Problem,
    width: int,
    candidates: Sequence[HeadGeometry] | None,
    progress: Progress,
) -> tuple[dict[str, HeadGeometry], dict[str, float]]:
    """The candidates by name, and which of them is likelier to win before any training."""
    if candidates is not None:
        return named(candidates), {}
    found, first = advised(problem, width, progress)
    return named(found), {name_of(first): ADVISED_PRIOR}


def _standing(folder: Path | None) -> Path | None:
    return None if folder is None else folder / STANDING


def _settled(
    runner: Runner, entrants: Mapping[str, HeadGeometry], steps: int, limits: Limits, measure: str
) -> Trial:
    return answer(race(runner, list(entrants), steps, limits), entrants, steps, measure)
