"""Train candidates as stacked ensembles: those whose parameters have equal shapes share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from headwise.data import Task
from headwise.errors import UnreadableFileError
from headwise.geometry import HeadGeometry
from headwise.training import Ensemble, Settings
from headwise.whole_files import read_checkpoint, write_checkpoint

#: What to do about a checkpoint that cannot be read.
TRAIN_AGAIN = "remove it to train again"

#: A model of a geometry, drawn from a seed.
Build = Callable[[HeadGeometry, int], nn.Module]


@dataclass(frozen=True)
class Saved:
    """One candidate where it stands: its members' rows of the state, generators and seeds."""

    state: dict[str, Tensor]
    generators: list[Tensor]
    seeds: list[int]


class EnsembleRunner:
    """A runner for built-in models on a task.

    Every candidate sees the same data in the same order for the same seed. A candidate that the
    race stops leaves its ensemble, so that it costs nothing more.
    """

    def __init__(
        self,
        candidates: Mapping[str, HeadGeometry],
        build: Build,
        task: Task,
        settings: Settings,
        *,
        measure: str = "error rate",
        path: Path | None = None,
    ) -> None:
        self.candidates, self.build, self.task = dict(candidates), build, task
        self.settings, self.measure, self.path = settings, measure, path
        self.stacks: dict[tuple[str, ...], Ensemble] = {}
        known = {} if path is None else read_saved(path)
        # The other seeds of a race train later, and find the checkpoint of the first one here.
        own = list(settings.seeds)
        self.saved: dict[str, Saved] = {n: one for n, one in known.items() if one.seeds == own}

    def train(self, names: Sequence[str], until: int) -> dict[str, list[float]]:
        """Train these candidates up to a step; their scores by seed, lower is better."""
        self._arrange(names)
        found: dict[str, list[float]] = {}
        for ensemble in self.stacks.values():
            for step in range(int(ensemble.state.step), until):
                ensemble.noise.prepare(step)
                ensemble.advance()
            for row in ensemble.rows():
                wrong = self.measure == "error rate"
                value = _error_rate(row.test_score) if wrong else row.test_loss
                found.setdefault(row.variant, []).append(float("nan") if value is None else value)
        return found

    def save(self) -> None:
        """Keep a checkpoint of every candidate that still runs, in one file."""
        if self.path is not None:
            standing = {
                name: saved
                for names, ensemble in self.stacks.items()
                for name, saved in _apart(names, ensemble).items()
            }
            write_saved(self.path, standing)

    def _arrange(self, names: Sequence[str]) -> None:
        """Build or narrow the ensembles so that they hold these candidates alone."""
        wanted = stackable({name: self.candidates[name] for name in names})
        for own, ensemble in self.stacks.items():
            if own not in wanted:
                self.saved |= _apart(own, ensemble)
        self.stacks = {own: self.stacks.get(own) or self._ensemble(own) for own in wanted}
        self.saved = {}

    def _ensemble(self, names: tuple[str, ...]) -> Ensemble:
        variants = {name: partial(self.build, self.candidates[name]) for name in names}
        ensemble = Ensemble(variants, self.task, self.settings)
        known = [self.saved[name] for name in names if name in self.saved]
        if len(known) == len(names):
            _take_up(ensemble, known)
        return ensemble


def stackable(candidates: Mapping[str, HeadGeometry]) -> list[tuple[str, ...]]:
    """Return the candidates in groups whose parameters have equal shapes."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, geometry in candidates.items():
        inner = (geometry.heads * geometry.qk_rank, geometry.heads * geometry.v_rank)
        inner += (geometry.kv_heads * geometry.qk_rank, geometry.kv_heads * geometry.v_rank)
        found.setdefault(inner, []).append(name)
    return [tuple(names) for names in found.values()]


def write_saved(path: Path, standing: Mapping[str, Saved]) -> None:
    """Write a checkpoint beside the old one, then put it in its place."""
    write_checkpoint(path, {name: vars(saved) for name, saved in standing.items()})


def read_saved(path: Path) -> dict[str, Saved]:
    """Read the candidates of a checkpoint; none if there is no file."""
    if not path.exists():
        return {}
    content = read_checkpoint(path, hint=TRAIN_AGAIN)
    try:
        return {name: Saved(**saved) for name, saved in content.items()}
    except (AttributeError, TypeError):
        raise UnreadableFileError(f"{path} is no checkpoint of a trial", hint=TRAIN_AGAIN) from None


def _error_rate(score: float | None) -> float | None:
    return None if score is None else 1.0 - score


def _apart(names: Sequence[str], ensemble: Ensemble) -> dict[str, Saved]:
    """Take an ensemble apart into its candidates."""
    copies, generators = ensemble.state.copies(), ensemble.noise.generators
    found = {}
    for name in names:
        rows = [place for place, one in enumerate(ensemble.members) if one.variant == name]
        found[name] = Saved(
            {key: copy[rows] if copy.dim() else copy for key, copy in copies.items()},
            [generators[row].get_state() for row in rows] if generators else [],
            [ensemble.members[row].seed for row in rows],
        )
    return found


def _take_up(ensemble: Ensemble, known: Sequence[Saved]) -> None:
    """Go on with candidates from where they stand, in the order of the ensemble's variants."""
    first = known[0].state
    ensemble.state.restore(
        {
            key: torch.cat([saved.state[key] for saved in known])
            if first[key].dim()
            else first[key]
            for key in first
        }
    )
    positions = [position for saved in known for position in saved.generators]
    for generator, position in zip(ensemble.noise.generators, positions, strict=True):
        generator.set_state(position)
