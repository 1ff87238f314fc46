"""Estimate what a training run costs on one accelerator, from its FLOPs and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments.train_pairs import TrainPairs
from headwise.runs import Spec

#: Forward once, backward twice.
PASSES = 3


@dataclass(frozen=True)
class Machine:
    """What an accelerator does in a second, as far as this training can use it.

    ``pairs`` counts attention operations on pairs of tokens: 10·r + 30 for a pair in a head of
    rank r, forward and backward. ``launch`` and ``start`` are seconds per layer and per run.
    """

    flops: float
    bytes: float
    launch: float
    pairs: float
    start: float


#: float32 products without tensor cores, kernels for short attention, CUDA graphs.
H200 = Machine(flops=4e13, bytes=3.5e12, launch=1e-4, pairs=1e13, start=2.0)


@dataclass(frozen=True, kw_only=True)
class _Work:
    """The cost of one step of one member: multiplications, stored numbers and attention."""

    layers: int
    products: int
    activations: int
    sequences: int
    tokens: int
    heads: int
    rank: int


def run_seconds(spec: Spec, machine: Machine = H200) -> float:
    """Estimate how long a spec takes; 0 for specs of unknown cost."""
    if isinstance(spec, TrainNeighbours | TrainPairs | TrainInContext):
        return machine.start + spec.steps * step_seconds(spec, machine)
    return 0.0


def cheap_first(specs: Iterable[Spec]) -> list[Spec]:
    """Return the specs in ascending order of cost."""
    return sorted(specs, key=run_seconds)


def step_seconds(
    spec: TrainNeighbours | TrainPairs | TrainInContext, machine: Machine = H200
) -> float:
    """Estimate one step of all seeds."""
    work = _work(spec)
    members = len(spec.seeds)
    products = members * PASSES * 2 * work.products / machine.flops
    # Activations are written once and read about three times in the backward pass.
    traffic = members * 4 * 4 * work.activations / machine.bytes
    pairs = work.layers * work.sequences * work.heads * work.tokens**2
    attention = members * pairs * (10 * work.rank + 30) / machine.pairs
    return machine.launch * work.layers + products + traffic + attention


def _work(spec: TrainNeighbours | TrainPairs | TrainInContext) -> _Work:
    if isinstance(spec, TrainNeighbours):
        width, inner, mlp = spec.shape.geometry.width, spec.heads * spec.rank, spec.mlp_width
        tokens, rank = spec.tokens, spec.rank
    elif isinstance(spec, TrainInContext):
        width, inner, mlp = spec.width, spec.width, 4 * spec.width
        tokens, rank = 2 * spec.points, spec.width // spec.heads
    else:
        return _pair_work(spec)
    rows = spec.batch * tokens * spec.layers
    return _Work(
        layers=spec.layers,
        products=rows * width * (4 * inner + 2 * mlp),
        activations=rows * (4 * inner + 2 * mlp + 6 * width),
        sequences=spec.batch,
        tokens=tokens,
        heads=spec.heads,
        rank=rank,
    )


def _pair_work(spec: TrainPairs) -> _Work:
    values = spec.heads * (spec.value_rank or spec.width)
    kept = spec.batch * 3 * (spec.heads * spec.rank + values)
    return _Work(
        layers=1,
        products=spec.width * kept,
        activations=kept,
        sequences=spec.batch,
        tokens=2,
        heads=spec.heads,
        rank=spec.rank,
    )
