"""Train a person's own models: ``build(geometry)`` makes one, ``batches(seed)`` feeds it."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.optim.lr_scheduler import LambdaLR

from headwise.data.named_functions import seeded
from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry
from headwise.trials.constants import constant_loss
from headwise.trials.halving import looks
from headwise.trials.prediction import refuse_one_seed
from headwise.whole_files import read_checkpoint, write_checkpoint

#: One batch: what the model takes, and what it should answer.
Pair = tuple[Tensor, Tensor]


#: The share of the steps over which the rate rises.
WARM_UP = 0.05


@dataclass(frozen=True)
class OwnTraining:
    """How own models are trained.

    Attributes:
        steps: The full length of training.
        rate: The largest learning rate of AdamW; it rises over 5 % of the steps, then falls to
            zero along a cosine.
        seeds: Seeds of weights and data order, two or more.
        validation: How many batches are set aside; they come first, and at most half of a pass
            through an iterable that ends. Short trainings score on fewer, see ``scored``.
        device: Where to train.

    Example:
        >>> OwnTraining(steps=2000, rate=3e-4).seeds
        (0, 1)
    """

    steps: int
    rate: float | int = 1e-3
    seeds: tuple[int, ...] = (0, 1)
    validation: int = 8
    device: str = "cpu"

    def __post_init__(self) -> None:
        refuse_one_seed(len(self.seeds))

    @property
    def scored(self) -> int:
        """How many of the batches set aside a look uses: the first ones, the same in every look.

        All looks together use at most as many batches as there are steps, but at least one each.
        A pass without gradient takes a third to a half of a step, so training takes longer.
        """
        return max(1, min(self.validation, self.steps // len(looks(self.steps))))

    def sizes(self) -> dict[str, Any]:
        """Everything but the device, by name."""
        return {name: value for name, value in vars(self).items() if name != "device"}


class OwnRunner:
    """A runner for own models with some of the seeds; the score is the loss on batches set aside.

    The loss is cross-entropy for whole-number targets and the squared error for others.
    """

    def __init__(
        self,
        candidates: Mapping[str, HeadGeometry],
        build: Callable[[HeadGeometry], nn.Module],
        batches: Callable[..., Iterable[Pair]],
        training: OwnTraining,
        *,
        seeds: Sequence[int] = (),
        folder: Path | None = None,
    ) -> None:
        self.candidates, self.build = dict(candidates), build
        self.batches = seeded(batches, getattr(batches, "__name__", "batches"))
        self.training, self.folder = training, folder
        self.seeds = tuple(seeds or training.seeds)
        self.runs: dict[tuple[str, int], _OwnRun] = {}
        self.aside = {seed: self._set_aside(seed) for seed in self.seeds}
        self.parameters = self._counted()

    @property
    def constant(self) -> float:
        """The loss of the best constant prediction on the batches set aside."""
        scored = [pairs[: self.training.scored] for pairs in self.aside.values()]
        return constant_loss([targets for pairs in scored for _, targets in pairs])

    def train(self, names: Sequence[str], until: int) -> dict[str, list[float]]:
        """Train these candidates up to a step; their losses by seed."""
        self.runs = {key: run for key, run in self.runs.items() if key[0] in names}
        found = {
            name: [self._run(name, seed).score(until) for seed in self.seeds] for name in names
        }
        _refuse_same_scores(found)
        return found

    def save(self) -> None:
        """Keep a checkpoint of every run."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            for key, run in self.runs.items():
                run.save(self._path(key))

    def _path(self, key: tuple[str, int]) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.pt"

    def _run(self, name: str, seed: int) -> _OwnRun:
        key = (name, seed)
        if key not in self.runs:
            torch.manual_seed(seed)
            model = self.build(self.candidates[name]).to(self.training.device)
            scored = self.aside[seed][: self.training.scored]
            run = _OwnRun(model, self._stream(seed), scored, self.training)
            if self.folder is not None and self._path(key).exists():
                run.resume(self._path(key))
            self.runs[key] = run
        return self.runs[key]

    def _stream(self, seed: int) -> Iterator[Pair]:
        """Batches to train on, without end: in every pass those that are set aside are left out."""
        while True:
            empty = True
            for pair in itertools.islice(self.batches(seed), len(self.aside[seed]), None):
                empty = False
                yield pair
            if empty:
                raise BadInputError(
                    f"expected the same batches each time batches({seed}) is called, got fewer",
                    hint="return a new iterable from every call",
                )

    def _set_aside(self, seed: int) -> list[Pair]:
        most = self.training.validation
        found = list(itertools.islice(self.batches(seed), most + 1))
        if len(found) < 2:
            raise BadInputError(
                f"expected batches from batches({seed}), at least 2, got {len(found) or 'none'}",
                hint="yield pairs of inputs and targets: some to train on, some for the score",
            )
        for pair in found:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise BadInputError(
                    f"expected pairs of inputs and targets from batches({seed}), "
                    f"got {type(pair).__name__}",
                    hint="yield (inputs, targets)",
                )
        return found[: most if len(found) > most else len(found) // 2]

    def _counted(self) -> dict[str, int]:
        """Parameters of each candidate; equal counts for unequal geometries give it away."""
        counts = {
            name: sum(p.numel() for p in _checked(self.build(geometry)).parameters())
            for name, geometry in self.candidates.items()
        }
        _refuse_ignored(counts, self.candidates)
        return counts


def _checked(made: Any) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise BadInputError(
            f"expected a torch module from build(geometry), got {type(made).__name__}",
            hint="return the model",
        )
    return made


def _refuse_ignored(counts: Mapping[str, int], candidates: Mapping[str, HeadGeometry]) -> None:
    """Refuse models of one size for geometries of several: ``build`` does not use them."""
    for (one, size), (other, same) in itertools.combinations(counts.items(), 2):
        needs = candidates[one].parameters, candidates[other].parameters
        if size == same and needs[0] != needs[1]:
            raise BadInputError(
                f"expected models whose size follows the geometry, got {size:,} parameters for "
                f"{one} and for {other}",
                hint="use the heads and ranks that build() is given",
            )


def _refuse_same_scores(scores: Mapping[str, Sequence[float]]) -> None:
    """Refuse equal scores to the last bit: splits of a width have equal sizes, not results."""
    found = {tuple(one) for one in scores.values()}
    if len(scores) > 1 and len(found) == 1 and all(math.isfinite(x) and x for x in found.pop()):
        raise BadInputError(
            f"expected models that differ with the geometry, got the same loss for all "
            f"{len(scores)} candidates",
            hint="use the heads and ranks that build() is given",
        )


class _OwnRun:
    """One model on its way."""

    def __init__(
        self, model: nn.Module, data: Iterator[Pair], aside: Sequence[Pair], how: OwnTraining
    ) -> None:
        self.model, self.data, self.aside, self.how, self.step = model, data, aside, how, 0
        self.optimiser = torch.optim.AdamW(model.parameters(), lr=how.rate, betas=(0.9, 0.95))
        self.schedule = LambdaLR(self.optimiser, lambda step: rate_share(step, how.steps))

    def score(self, until: int) -> float:
        """Train up to a step, and return the mean loss on the batches set aside."""
        self.model.train()
        while self.step < until:
            self.optimiser.zero_grad()
            self._loss(next(self.data)).backward()
            self.optimiser.step()
            self.schedule.step()
            self.step += 1
        self.model.eval()
        with torch.no_grad():
            return sum(float(self._loss(pair)) for pair in self.aside) / len(self.aside)

    def _loss(self, pair: Pair) -> Tensor:
        inputs, targets = (part.to(self.how.device) for part in pair)
        answers = self.model(inputs)
        if targets.is_floating_point():
            return mse_loss(answers, targets)
        if answers.shape[:-1] != targets.shape:
            raise BadInputError(
                f"expected one answer for each of the targets {tuple(targets.shape)}, got answers "
                f"of shape {tuple(answers.shape)}",
                hint="return scores whose last axis is the classes",
            )
        return cross_entropy(answers.flatten(0, -2), targets.flatten())

    def save(self, path: Path) -> None:
        """Write a checkpoint beside the old one, then put it in its place."""
        content = {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        write_checkpoint(path, content)

    def resume(self, path: Path) -> None:
        """Go to where a checkpoint stands, and pass over the batches it has seen."""
        hint = "remove it to train again"
        content = read_checkpoint(path, hint=hint)
        try:
            self.model.load_state_dict(content["model"])
            self.optimiser.load_state_dict(content["optimiser"])
            self.schedule.load_state_dict(content["schedule"])
            self.step = content["step"]
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            raise UnreadableFileError(f"{path} is no checkpoint of this model", hint=hint) from None
        for _ in range(self.step):
            next(self.data)


def rate_share(step: int, steps: int) -> float:
    """Return the share of the largest rate at a step: a linear rise, then a cosine to zero."""
    rise = max(1, round(WARM_UP * steps))
    if step < rise:
        return (step + 1) / rise
    done = min(1.0, (step - rise) / max(1, steps - rise))
    return 0.5 * (1 + math.cos(math.pi * done))
