"""What is trained over ids, in order of worth: each job is one ensemble.

Sweeps: "width" keeps heads × rank = width; "half" keeps it at half of the width; "keys" changes
the query-key rank alone, "values" the value rank alone; "apart" takes the most telling of these,
and one split that moves rank from keys to values at equal cost; "rates" repeats three splits of
the width at other learning rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.advice.language_model import Geometry, Member
from benchmarks.advice.language_tasks import TASKS, Task
from benchmarks.advice.language_training import decay_start

Sweep = Literal["width", "half", "keys", "values", "apart", "rates"]

#: The smallest head dimension of the sweeps.
LEAST = 8

#: The usual head dimension. Query-key or value rank changes alone in as many heads as have it, and
#: in a single head.
USUAL_RANK = 64

SEEDS = (0, 1, 2)

#: The rate of every task, and the other two where rates are compared.
RATE, OTHER_RATES = 1e-3, (5e-4, 2e-3)

#: Lengths of training in steps.
LONG, USUAL, SHORT = (1000, 2000, 4000, 8000), (1000, 2000, 4000), (1000, 2000)
TWO = (1000, 4000)

#: Recall is learned suddenly, and often early.
RECALL = (250, 500, 1000, 2000, 4000)

#: What one H200 is expected to sustain, for the estimates that --list prints.
SUSTAINED = 1.5e14


@dataclass(frozen=True)
class Job:
    """Sweeps of one task that train together."""

    task: Task
    sweeps: tuple[Sweep, ...]
    lengths: tuple[int, ...]
    rates: tuple[float, ...] = (RATE,)

    @property
    def name(self) -> str:
        """The task and its sweeps, such as "code-next-token-w256-n512:width"."""
        return f"{self.task.name}:{'+'.join(self.sweeps)}"

    def members(self, seeds: Sequence[int] = SEEDS) -> tuple[Member, ...]:
        """Who trains, geometry by geometry."""
        width = self.task.shape.width
        geometries = dict.fromkeys(one for name in self.sweeps for one in _sweep(name, width))
        rates = OTHER_RATES if "rates" in self.sweeps else self.rates
        return tuple(
            Member(geometry, seed, rate)
            for geometry in geometries
            for rate in rates
            for seed in seeds
        )

    @property
    def steps(self) -> int:
        """Steps of trunk and branches together."""
        branches = sum(length - decay_start(length) for length in self.lengths)
        return decay_start(max(self.lengths)) + branches

    def estimated_seconds(self, seeds: Sequence[int] = SEEDS) -> float:
        """The time that an H200 is expected to take."""
        tokens = self.task.sequences * self.task.shape.length * self.steps
        each = (self.task.shape.operations(m.geometry) for m in self.members(seeds))
        return tokens * sum(each) / SUSTAINED


def _sweep(name: Sweep, width: int) -> list[Geometry]:
    ranks = [rank for rank in (8, 16, 32, 64, 128, 256) if LEAST <= rank <= width]
    heads, usual = max(1, width // USUAL_RANK), min(width, USUAL_RANK)
    thin = [Geometry(1, rank, width) for rank in (width // 16, width // 4)]
    if name == "width":
        return [Geometry(width // rank, rank, rank) for rank in ranks]
    if name == "half":
        return [Geometry(width // 2 // rank, rank, rank) for rank in ranks if 2 * rank <= width]
    if name == "keys":
        return [Geometry(heads, rank, usual) for rank in ranks if rank <= 2 * usual] + thin
    if name == "values":
        return [Geometry(heads, usual, rank) for rank in ranks if rank <= 2 * usual]
    if name == "apart":
        pairs = ((16, 64), (32, 64), (64, 32), (32, 96))
        return [Geometry(heads, qk_rank, v_rank) for qk_rank, v_rank in pairs] + thin
    return [Geometry(width // rank, rank, rank) for rank in (width // 16, usual, width)]


def _jobs() -> list[Job]:
    long_prose = TASKS["prose-next-token-w256-n512"]
    code = TASKS["code-next-token-w256-n512"]
    recall = [task for task in TASKS.values() if task.kind == "recall"]
    rates = (3e-4, RATE, 3e-3)
    found = [
        Job(long_prose, ("width",), LONG),
        Job(recall[0], ("width",), RECALL, rates),
        Job(TASKS["prose-next-token-w128-n128"], ("width",), LONG),
        Job(code, ("width",), USUAL),
        Job(long_prose, ("apart",), (max(USUAL),)),
        Job(TASKS["associative-mixed-w128-n64"], ("width",), TWO, (RATE, 3e-3)),
        Job(code, ("apart",), SHORT),
        Job(TASKS["prose-masked-token-w128-n128"], ("width",), TWO),
        Job(TASKS["sorting-w128-n128"], ("width",), TWO),
        Job(TASKS["copying-w128-n256"], ("width",), TWO),
        Job(TASKS["prose-next-token-w128-n128"], ("half",), TWO),
        Job(TASKS["code-token-classes-w128-n128"], ("width",), SHORT),
        Job(long_prose, ("keys", "values"), USUAL),
        Job(code, ("keys", "values"), USUAL),
        Job(long_prose, ("rates",), SHORT),
        Job(TASKS["prose-masked-token-w256-n128"], ("width",), USUAL),
        Job(TASKS["code-next-token-w256-n128"], ("width",), USUAL),
        Job(long_prose, ("half",), USUAL),
        Job(recall[0], ("keys", "values"), RECALL),
    ]
    return [*found, *_the_rest(found)]


def _the_rest(first: Sequence[Job]) -> list[Job]:
    """Every sweep of every task that the first jobs leave out."""
    known = {(job.task.name, sweep) for job in first for sweep in job.sweeps}
    plans: tuple[tuple[Sweep, ...], ...] = (("width",), ("half",), ("keys", "values"))
    return [
        Job(task, sweeps, RECALL if task.kind == "recall" else USUAL)
        for sweeps in plans
        for task in TASKS.values()
        if (task.name, sweeps[0]) not in known
    ]


#: Every job by name, in order of worth.
JOBS = {job.name: job for job in _jobs()}
