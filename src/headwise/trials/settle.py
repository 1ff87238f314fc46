"""trial: train candidates on data, or a person's own models, and answer which is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from headwise.checks import of_type, positive, whole
from headwise.data.named_functions import as_function, working_directory_importable
from headwise.devices import refuse_absent
from headwise.errors import ParameterError
from headwise.geometry import HeadGeometry, read_geometries
from headwise.progress import SILENT, Progress
from headwise.trials.candidates import advised, name_of, named, splits
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.halving import Limits, Repeats, Runner, race
from headwise.trials.own_models import OwnRunner, OwnTraining, Pair
from headwise.trials.prediction import ADVISED_PRIOR, refuse_one_seed
from headwise.trials.problems import Problem
from headwise.trials.result import Trial, answer
from headwise.trials.sources import Frame, read_problem
from headwise.trials.workers import (
    PROBLEM,
    TrainBuiltIn,
    TrainCandidate,
    TrainOwn,
    WorkerRunner,
    cluster_of,
    settings_of,
)

#: In which order runs train; a standing of another order is refused.
ORDER = "first seed first"

#: The file of a trial's folder that says how far it has come.
STANDING = "trial.json"


def trial(
    source: Any,
    labels: Any = None,
    *,
    task: str | None = None,
    width: int = 64,
    depth: int = 2,
    patch: int | None = None,
    size: int | None = None,
    length: int | None = None,
    tokenizer: str | None = None,
    candidates: Sequence[HeadGeometry] | str | None = None,
    steps: int = 400,
    batch: int = 32,
    rate: float | int = 3e-3,
    seeds: int | Sequence[int] = 3,
    minutes: float | int = math.inf,
    folder: Path | str | None = None,
    device: str = "cpu",
    cluster: str | None = None,
    progress: Progress = SILENT,
) -> Trial:
    """Train head geometries side by side on your data and say which is best.

    All candidates train with the first seed, in the same data order. After each round the half
    with the worse predicted scores stops. Those that are left train with the other seeds too.

    Args:
        source: Any source that ``advise`` takes, of images (b, channels, side, side), vectors
            (b, n, c), token ids (b, n) or (n), or texts. Subfolders of a folder, and whole numbers
            beside the inputs of batches, are classes.
        labels: Class numbers (b), a file of them, or names of classes, if the source has none.
            For regression one floating-point number for each input. Text and ids without labels
            are predicted token by token.
        task: "classify", "regress" or "next-token"; by default "classify" if labels are whole
            numbers, and "regress" if they have fractions.
        width: Width of the built-in model.
        depth: Its number of layers.
        patch: Side of the square patches that images are cut into; by default up to 4, so that an
            image has at least 16 of them.
        size: Side that images of a folder are scaled to; 32 by default.
        length: Tokens of a sequence of text; 64 by default, for speed (``advise`` takes 256).
        tokenizer: "character" (the default for text without labels), "word" (the default with
            labels) or the path of a tokenizer.json.
        candidates: Geometries to compare, or a text such as "4x16,1x64" (heads x rank). By default
            those that ``advise`` names, and the usual one.
        steps: The full length of training that the answer is about.
        batch: Samples of one step.
        rate: Largest learning rate.
        seeds: The number of seeds of weights and data order, or the seeds; two or more.
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
    seeds = _seeds(seeds)
    _refuse_wrong_kinds(source, minutes, folder)
    width, depth = whole("`width`", width), whole("`depth`", depth)
    given = _geometries(candidates, width)
    steps, batch = whole("`steps`", steps), whole("`batch`", batch)
    positive("`rate`", rate, example=3e-3)
    if cluster is None:
        refuse_absent(device)
    problem = read_problem(source, labels, Frame(task, depth, patch, size, length, tokenizer))
    entrants, prior = _entrants(problem, width, given, progress)
    sizes = {"seeds": seeds, "steps": steps, "batch": batch, "rate": float(rate)}
    identity = f"{ORDER}: {problem.identity} {list(entrants)} {width} {sizes}"
    limits = Limits(60.0 * minutes, _standing(folder), identity, progress, prior=prior)
    contest = _Contest(entrants, seeds, steps, problem.measure, limits, folder, problem.constant)
    if cluster is None:
        return contest.settled(partial(_ensembles, problem, contest, device, sizes))
    return contest.settled_on(cluster, device, partial(_built_in_spec, problem, sizes))


def trial_of(
    build: Callable[[HeadGeometry], nn.Module] | str,
    batches: Callable[..., Iterable[Pair]] | str,
    candidates: Sequence[HeadGeometry] | str | None = None,
    *,
    steps: int,
    width: int = 64,
    rate: float | int = 1e-3,
    seeds: int | Sequence[int] = 2,
    validation: int = 8,
    device: str = "cpu",
    minutes: float | int = math.inf,
    folder: Path | str | None = None,
    cluster: str | None = None,
    progress: Progress = SILENT,
) -> Trial:
    """Train your own model with different head geometries and say which is best.

    Args:
        build: Returns a new model of a geometry; torch's random generator is seeded before.
            Like ``batches``, a function or its name as PACKAGE:FUNCTION.
        batches: Returns pairs of inputs and targets, in the same order for the same seed.
            Iterables that end are started again, without those set aside. A function without
            parameters gives every seed the same data in the same order.
        candidates: Geometries to compare, or a text such as "4x16,1x64" (heads x rank). By default
            every split of the width into heads of a power of two, from rank 4 on.
        steps: The full length of training that the answer is about.
        width: Width of the model, unless ``candidates`` are objects, which have their own.
        rate: Largest learning rate of AdamW; it rises over 5 % of the steps, then falls to zero
            along a cosine.
        seeds: The number of seeds of weights and data order, or the seeds; two or more.
        validation: How many batches are set aside for the score; they come first. If there are
            fewer than 16 steps for each, only the first of them are scored, the same for all
            candidates, so that scoring never takes longer than training.
        device: "cpu" or "cuda".
        minutes: Time limit; the answer then rests on extrapolation.
        folder: Where to keep checkpoints. A trial that was stopped goes on from there.
        cluster: Train on a Dask cluster: "local", "local:4" or "tcp://HOST:PORT". Needs a folder
            that every worker can read and write, and names of functions.
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
        >>> found = trial_of(build, batches, candidates, steps=100, rate=0.03)
        >>> found.best.geometry.qk_rank
        4
    """
    width = whole("`width`", width)
    given = _geometries(candidates, width)
    entrants = named(splits(width) if given is None else given)
    steps = whole("`steps`", steps)
    training = OwnTraining(steps, rate, _seeds(seeds), validation=validation, device=device)
    told = [one for one in (build, batches) if isinstance(one, str)]
    identity = f"{ORDER}: {list(entrants)} {training} {told}"
    limits = Limits(60.0 * minutes, _standing(folder), identity, progress)
    own = partial(
        OwnRunner, entrants, as_function("build", build), as_function("batches", batches), training
    )
    with working_directory_importable():
        # Refuses models and batches that cannot be trained, before a cluster is asked.
        constant = own().constant
        contest = _Contest(entrants, training.seeds, steps, "loss", limits, folder, constant)
        if cluster is None:
            return contest.settled(lambda seeds: own(seeds=seeds, folder=contest.place))
    _refuse_functions(told)
    return contest.settled_on(cluster, training.device, partial(_own_spec, told, training))


@dataclass(frozen=True)
class _Contest:
    """Who competes, with which seeds and steps, by which measure, within which limits and where."""

    entrants: Mapping[str, HeadGeometry]
    seeds: tuple[int, ...]
    steps: int
    measure: str
    limits: Limits
    folder: Path | str | None
    constant: float

    @property
    def place(self) -> Path | None:
        return None if self.folder is None else Path(self.folder)

    def settled(self, runner: Callable[[tuple[int, ...]], Runner]) -> Trial:
        """Settle it with the runners of the first seed and of the others."""
        first, others = self.seeds[:1], self.seeds[1:]
        repeats = Repeats(len(others), partial(runner, others))
        standing = race(runner(first), list(self.entrants), self.steps, self.limits, repeats)
        return answer(standing, self.entrants, self.steps, self.measure, self.constant)

    def settled_on(
        self, cluster: str, device: str, spec_in: Callable[[Path], Callable[..., TrainCandidate]]
    ) -> Trial:
        """Settle it on the workers of a cluster, which meet in the folder."""
        with closing(cluster_of(cluster, device, self.place)) as executor:
            assert self.place is not None
            spec = spec_in(self.place.resolve())
            return self.settled(
                lambda seeds: WorkerRunner(self.entrants, partial(spec, now=seeds), executor)
            )


def _ensembles(
    problem: Problem,
    contest: _Contest,
    device: str,
    sizes: Mapping[str, Any],
    seeds: tuple[int, ...],
) -> EnsembleRunner:
    """Train built-in models with some of the seeds in this process."""
    place = contest.place
    return EnsembleRunner(
        contest.entrants,
        problem.build,
        problem.task(device),
        settings_of(problem, device, **{**sizes, "seeds": seeds}),
        measure=problem.measure,
        path=None if place is None else place / "models.pt",
    )


def _built_in_spec(
    problem: Problem, sizes: Mapping[str, Any], folder: Path
) -> Callable[..., TrainCandidate]:
    """Write the data for the workers; return what makes a spec of a candidate and a look."""
    problem.write(folder / PROBLEM)
    return partial(TrainBuiltIn, folder=str(folder), problem=problem.identity, **sizes)


def _own_spec(
    names: Sequence[str], training: OwnTraining, folder: Path
) -> Callable[..., TrainCandidate]:
    build, batches = names
    own = partial(TrainOwn, folder=str(folder), build=build, batches=batches)
    return partial(own, **training.sizes())


def _refuse_functions(names: Sequence[str]) -> None:
    if len(names) < 2:
        raise ParameterError(
            "expected build and batches as PACKAGE:FUNCTION for a cluster, got functions",
            hint="pass their names, so that workers can import them",
        )


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


def _refuse_wrong_kinds(source: Any, minutes: Any, folder: Path | str | None) -> None:
    """Refuse, before anything is measured or trained, what could only fail later."""
    if source is None:
        raise ParameterError("expected data for `source`, got none", hint="pass 'digits' to try it")
    of_type("`folder`", folder, (str, Path, type(None)), "a path")
    if minutes != math.inf:
        positive("`minutes`", minutes, example=10)


def _geometries(candidates: Any, width: int) -> Sequence[HeadGeometry] | None:
    """Return candidates as geometries; a text is read, and other kinds are refused."""
    if isinstance(candidates, str):
        return read_geometries(candidates, width)
    if candidates is None:
        return None
    for geometry in candidates if isinstance(candidates, Sequence) else (candidates,):
        of_type("`candidates`", geometry, HeadGeometry, "HeadGeometry objects or a text")
    return candidates


def _seeds(given: Any) -> tuple[int, ...]:
    """Return the seeds; a number of them counts from 0."""
    counted = isinstance(given, int) and not isinstance(given, bool)
    seeds: Any = range(whole("`seeds`", given)) if counted else given
    of_type("`seeds`", seeds, Sequence, "a whole number or a list of them")
    different = {whole("`seeds`", seed, 0) for seed in seeds}
    refuse_one_seed(len(different))
    if len(different) < len(seeds):
        raise ParameterError(f"expected different seeds, got {list(seeds)}", hint="pass each once")
    return tuple(seeds)


def _standing(folder: Path | str | None) -> Path | None:
    return None if folder is None else Path(folder) / STANDING
