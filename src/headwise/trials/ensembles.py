"""Train candidates as stacked ensembles: those whose parameters have equal shapes share one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from torch import nn

from headwise.data import Task
from headwise.geometry import HeadGeometry
from headwise.training import Ensemble, Saving, Settings
from headwise.training.checkpoint import resume, save

#: A model of a geometry, drawn from a seed.
Build = Callable[[HeadGeometry, int], nn.Module]


class EnsembleRunner:
    """A runner for built-in models on a task; score = 1 − the task's score where high is good.

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
        folder: Path | None = None,
    ) -> None:
        self.candidates, self.build, self.task = dict(candidates), build, task
        self.settings, self.folder = settings, folder
        self.stacks: dict[tuple[str, ...], Ensemble] = {}

    def train(self, names: Sequence[str], until: int) -> dict[str, list[float]]:
        """Train these candidates up to a step; their error rates by seed."""
        self._arrange(names)
        found: dict[str, list[float]] = {}
        for ensemble in self.stacks.values():
            for step in range(int(ensemble.state.step), until):
                ensemble.noise.prepare(step)
                ensemble.advance()
            for row in ensemble.rows():
                score = row.test_score
                found.setdefault(row.variant, []).append(
                    float("nan") if score is None else 1.0 - score
                )
        return found

    def save(self) -> None:
        """Keep a checkpoint of every ensemble; those of larger fields go."""
        if self.folder is None:
            return
        kept = set()
        for names, ensemble in self.stacks.items():
            saving = self._saving(names)
            generators = ensemble.noise.generators
            save(saving, ensemble.identity, ensemble.state, generators, ())
            kept.add(saving.path)
        for path in self.folder.glob("*.pt"):
            if path not in kept:
                path.unlink()

    def _arrange(self, names: Sequence[str]) -> None:
        """Build or narrow the ensembles so that they hold these candidates alone."""
        wanted = _stackable({name: self.candidates[name] for name in names})
        self.stacks = {own: self.stacks.get(own) or self._ensemble(own) for own in wanted}

    def _ensemble(self, names: tuple[str, ...]) -> Ensemble:
        variants = {name: partial(self.build, self.candidates[name]) for name in names}
        ensemble = Ensemble(variants, self.task, self.settings)
        larger = next((s for s in self.stacks if set(names) <= set(s)), None)
        if larger is not None:
            _take_over(ensemble, self.stacks[larger])
        elif self.folder is not None:
            resume(self._saving(names), ensemble.identity, ensemble.state, _generators(ensemble))
        return ensemble

    def _saving(self, names: tuple[str, ...]) -> Saving:
        assert self.folder is not None
        key = " ".join(names)
        return Saving(self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.pt", key)


def _generators(ensemble: Ensemble) -> Sequence:
    return ensemble.noise.generators


def _stackable(candidates: Mapping[str, HeadGeometry]) -> list[tuple[str, ...]]:
    """Candidates in groups whose parameters have equal shapes."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, geometry in candidates.items():
        inner = (geometry.heads * geometry.qk_rank, geometry.heads * geometry.v_rank)
        inner += (geometry.kv_heads * geometry.qk_rank, geometry.kv_heads * geometry.v_rank)
        found.setdefault(inner, []).append(name)
    return [tuple(names) for names in found.values()]


def _take_over(smaller: Ensemble, larger: Ensemble) -> None:
    """Go on with some members of a larger ensemble, from where they stand."""
    rows = [larger.members.index(member) for member in smaller.members]
    kept = {
        name: copy[rows] if copy.dim() else copy for name, copy in larger.state.copies().items()
    }
    smaller.state.restore(kept)
    if larger.noise.generators:
        for row, generator in zip(rows, smaller.noise.generators, strict=True):
            generator.set_state(larger.noise.generators[row].get_state())
