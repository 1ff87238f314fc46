"""What a training run costs on one accelerator, from its FLOPs and bytes; cheap runs first."""

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
    """What an accelerator does in a second, as far as training here can use it.

    ``pairs`` counts the operations of attention, which works on pairs of tokens and not on large
    products: 10·r + 30 for a pair in a head of rank r, forward and backward.

    >>> H200.flops > 1e13
    True
    """

    flops: float
    bytes: float
    launch: float
    pairs: float
    start: float


#: float32 products without tensor cores, kernels for short attention, CUDA graphs.
H200 = Machine(flops=4e13, bytes=3.5e12, launch=1e-4, pairs=1e13, start=2.0)


def run_seconds(spec: Spec, machine: Machine = H200) -> float:
    """About how long a spec takes; 0 for what trains nothing.

    >>> run_seconds(TrainNeighbours(rank=64, steps=1000)) < 10
    True
    """
    if isinstance(spec, TrainNeighbours | TrainPairs | TrainInContext):
        return machine.start + spec.steps * step_seconds(spec, machine)
    return 0.0


def cheap_first(specs: Iterable[Spec]) -> list[Spec]:
    """Specs in rising order of cost, each once.

    >>> dear, cheap = (TrainNeighbours(rank=1, copies=c, steps=100) for c in (64, 1))
    >>> [spec.copies for spec in cheap_first([dear, cheap, dear])]
    [1, 64]
    """
    return sorted({spec.key: spec for spec in specs}.values(), key=run_seconds)


def step_seconds(
    spec: TrainNeighbours | TrainPairs | TrainInContext, machine: Machine = H200
) -> float:
    """One step of all seeds.

    >>> step_seconds(TrainNeighbours(rank=64)) < step_seconds(TrainNeighbours(rank=64, layers=5))
    True
    """
    work = _work(spec)
    members = len(spec.seeds)
    products = members * PASSES * 2 * work.products / machine.flops
    # Activations are written once and read about three times on the way back.
    traffic = members * 4 * 4 * work.activations / machine.bytes
    attention = members * _attention_seconds(work, machine)
    return machine.launch * work.layers + products + traffic + attention


@dataclass(frozen=True)
class _Work:
    """One step of one member: multiplications of linear maps, numbers kept, heads."""

    layers: int
    products: int
    activations: int
    sequences: int
    tokens: int
    heads: int
    rank: int


def _attention_seconds(work: _Work, machine: Machine) -> float:
    pairs = work.layers * work.sequences * work.heads * work.tokens**2
    return pairs * (10 * work.rank + 30) / machine.pairs


def _work(spec: TrainNeighbours | TrainPairs | TrainInContext) -> _Work:
    if isinstance(spec, TrainNeighbours):
        width = spec.shape.geometry.width
        inner = spec.heads * spec.rank
        sizes = (spec.tokens, spec.heads, spec.rank)
        return _encoder_work(width, inner, spec.mlp_width, spec.layers, spec.batch, sizes)
    if isinstance(spec, TrainInContext):
        sizes = (2 * spec.points, spec.heads, spec.width // spec.heads)
        width = spec.width
        return _encoder_work(width, width, 4 * width, spec.layers, spec.batch, sizes)
    values = spec.heads * (spec.value_rank or spec.width)
    inner = spec.heads * spec.rank
    products = spec.batch * spec.width * (3 * inner + 3 * values)
    kept = spec.batch * (3 * inner + 3 * values)
    return _Work(1, products, kept, spec.batch, 2, spec.heads, spec.rank)


def _encoder_work(
    width: int, inner: int, mlp: int, layers: int, batch: int, sizes: tuple[int, int, int]
) -> _Work:
    tokens, heads, rank = sizes
    rows = batch * tokens * layers
    products = rows * width * (4 * inner + 2 * mlp)
    kept = rows * (4 * inner + 2 * mlp + 6 * width)
    return _Work(layers, products, kept, batch, tokens, heads, rank)
