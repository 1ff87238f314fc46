"""Train candidates on workers: one spec for each candidate and look, through the runs engine."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from headwise.data.named_functions import function_named, working_directory_importable
from headwise.errors import BadInputError, ExecutorError
from headwise.geometry import HeadGeometry
from headwise.runs import Answer, ClusterExecutor, Executor, Row, Spec, device
from headwise.training import Settings
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.own_models import OwnRunner, OwnTraining
from headwise.trials.problems import MOST_TESTED, Problem

#: The file of a trial's folder that holds its data.
PROBLEM = "problem.pt"


class TrainCandidate(Spec, frozen=True):
    """Train one candidate up to a step, from the checkpoint of the look before."""

    folder: str
    name: str
    width: int
    heads: int
    kv_heads: int
    qk_rank: int
    v_rank: int
    seeds: tuple[int, ...]
    steps: int
    rate: float
    until: int
    #: The seeds of the trial that train now; all if empty.
    now: tuple[int, ...] = ()

    @property
    def geometry(self) -> HeadGeometry:
        """The heads and ranks of this candidate."""
        return HeadGeometry(self.width, self.heads, self.kv_heads, self.qk_rank, self.v_rank)

    @property
    def place(self) -> Path:
        """The folder of this candidate's checkpoints."""
        return Path(self.folder) / hashlib.sha256(self.name.encode()).hexdigest()[:16]

    @abstractmethod
    def runner(self) -> EnsembleRunner | OwnRunner:
        """What trains it."""

    def ask(self) -> Row:
        """Train and save; scores that are not finite become None."""
        runner = self.runner()
        scores = runner.train([self.name], self.until)[self.name]
        runner.save()
        return {"scores": [score if math.isfinite(score) else None for score in scores]}


class TrainBuiltIn(TrainCandidate, frozen=True):
    """Train a built-in model on the data in the trial's folder."""

    kind: Literal["trial-built-in"] = "trial-built-in"
    revision: Literal[1] = 1
    batch: int
    problem: str

    def runner(self) -> EnsembleRunner:
        """An ensemble of this candidate's seeds."""
        found = Problem.read(Path(self.folder) / PROBLEM)
        if found.identity != self.problem:
            raise BadInputError(
                f"expected the data of this trial in {self.folder}, got those of another",
                hint="choose another folder",
            )
        sizes = {"steps": self.steps, "batch": self.batch, "rate": self.rate}
        settings = settings_of(found, device(), seeds=self.now or self.seeds, **sizes)
        return EnsembleRunner(
            {self.name: self.geometry},
            found.build,
            found.task(device()),
            settings,
            measure=found.measure,
            path=self.place / "models.pt",
        )


class TrainOwn(TrainCandidate, frozen=True):
    """Train a person's own model, named as PACKAGE:FUNCTION."""

    kind: Literal["trial-own"] = "trial-own"
    revision: Literal[1] = 1
    build: str
    batches: str
    validation: int

    def runner(self) -> OwnRunner:
        """This candidate alone."""
        training = OwnTraining(
            self.steps, self.rate, self.seeds, validation=self.validation, device=device()
        )
        build, batches = function_named(self.build), function_named(self.batches)
        named = {self.name: self.geometry}
        return OwnRunner(named, build, batches, training, seeds=self.now, folder=self.place)

    @working_directory_importable()
    def ask(self) -> Row:
        """Train and save; its functions may import more while they run."""
        return super().ask()


def settings_of(
    problem: Problem, device: str, *, seeds: Sequence[int], steps: int, batch: int, rate: float
) -> Settings:
    """How built-in models are trained."""
    tested = problem.task("cpu").examine(MOST_TESTED, torch.Generator())
    return Settings(
        steps=steps,
        batch=batch,
        seeds=tuple(seeds),
        learning_rates=(rate,),
        evaluation=len(tested.targets[0]),
        device=device,
        execution="eager",
    )


class WorkerRunner:
    """A runner that hands each candidate of a look to an executor."""

    def __init__(
        self,
        candidates: Mapping[str, HeadGeometry],
        spec: Callable[..., TrainCandidate],
        executor: Executor,
    ) -> None:
        self.candidates, self.spec, self.executor = dict(candidates), spec, executor

    def train(self, names: Sequence[str], until: int) -> dict[str, list[float]]:
        """Train these candidates up to a step, each on a worker."""
        specs = [
            self.spec(name=name, until=until, **_sizes(self.candidates[name])) for name in names
        ]
        places = {spec.key: spec.name for spec in specs}
        found: dict[str, list[float]] = {}
        for outcome in self.executor.outcomes(specs, lambda spec: None):
            name = places[outcome.key]
            if not isinstance(outcome, Answer):
                raise ExecutorError(
                    f"training {name} failed on its worker: {outcome.reason}",
                    hint="mend that and run the same again to go on",
                )
            scores = outcome.rows[0]["scores"]
            found[name] = [math.nan if score is None else score for score in scores]
        return {name: found[name] for name in names}

    def save(self) -> None:
        """Do nothing: workers save what they train."""


def _sizes(geometry: HeadGeometry) -> dict[str, Any]:
    return {
        name: getattr(geometry, name)
        for name in ("width", "heads", "kv_heads", "qk_rank", "v_rank")
    }


def cluster_of(address: str, on: str, folder: Path | None) -> ClusterExecutor:
    """Connect to a cluster; its workers meet in the trial's folder."""
    if folder is None:
        raise BadInputError(
            f"expected a folder for a trial on cluster {address}, got none",
            hint="pass a folder that every worker can read and write",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return ClusterExecutor(address, device=on)
