"""How long, and with how many seeds, each trained cell runs at each scale: one table.

To deepen a scale, change numbers here: more steps ask new questions, another group of seeds
adds to those already answered. A cell that is not listed at a scale is left out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments.training_cost import cheap_first
from headwise.papers.exhibit import Scale, grid
from headwise.papers.kinds.protocols import PROTOCOLS
from headwise.runs import Spec

#: Seeds that train as one ensemble; several groups are several runs.
SeedGroups = tuple[tuple[int, ...], ...]

FIVE: SeedGroups = ((0, 1, 2, 3, 4),)
TWO: SeedGroups = ((0, 1),)
#: Five seeds as two ensembles, so that the first two can be recorded before the others.
TWO_THEN_THREE: SeedGroups = ((0, 1), (2, 3, 4))

POWERS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Schedule:
    """Steps, ranks, seeds, and whatever else a scale changes in the spec.

    >>> Schedule(100, ranks=(1, 8)).seeds
    ((0, 1),)
    """

    steps: int
    ranks: tuple[int, ...] = POWERS
    seeds: SeedGroups = TWO
    more: Mapping[str, Any] = field(default_factory=dict)


#: (layers, copies) -> schedules, at each scale.
ByDepth = Mapping[Scale, Mapping[tuple[int, int], tuple[Schedule, ...]]]

#: What is trained in seconds: small data, narrow MLP.
_TINY = {"batch": 32, "sequences": 320, "epoch": 10, "evaluation": 32, "mlp_width": 32}

#: What two cores train in minutes.
_SMALL = {
    "batch": 64,
    "sequences": 6400,
    "mlp_width": 128,
    "evaluation": 512,
    "learning_rate": 0.03,
}


#: The same for two layers, which end in zero output at one layer's rate.
_SMALL_SLOW = _SMALL | {"learning_rate": 0.008, "warm_up": 0.4}


def _slow_start(rate: float, warm_up: float, batch: int = 64) -> dict[str, Any]:
    """A short run of several layers: small batches, a long warm-up, products in TF32.

    The learned scale of the last norm falls towards zero before directions are learnt, and stays
    there (a loss of exactly 1) if the rate is above about 0.002 at that moment with two or three
    layers, 0.001 with five: some hundred steps into the run. The paper's 5,000 steps of warm-up
    keep it below; a short run must rise as slowly.
    """
    epoch = 25_600 // batch
    return {
        "learning_rate": rate,
        "warm_up": warm_up,
        "batch": batch,
        "epoch": epoch,
        "dtype": "tf32",
    }


#: One layer tolerates ten times the paper's rate: a tenth of the steps gives nearly its losses.
_FAST = {"learning_rate": 0.1, "warm_up": 0.1, "dtype": "tf32"}

#: With d³ parameters low ranks learn a little faster at a lower one.
_FAST_WIDE = _FAST | {"learning_rate": 0.06}

#: d=64, N=16: (layers, copies) -> schedules. The paper: 100,000 steps, five seeds. On a laptop d³
#: parameters (16 copies) would take the grid past a quarter of an hour.
RANK_DEPTH: ByDepth = {
    Scale.MINIATURE: {(1, 1): (Schedule(20, (2, 8), more=_TINY),)},
    Scale.LAPTOP: {
        (1, copies): (Schedule(3000, (1, 2, 4, 8, 16), more=_SMALL),) for copies in (1, 4)
    },
    Scale.GPU: {
        (1, 1): (Schedule(10_000, more=_FAST),),
        (1, 8): (Schedule(10_000, more=_FAST),),
        (1, 64): (Schedule(6000, more=_FAST_WIDE),),
        **{(3, c): (Schedule(8000, more=_slow_start(0.01, 0.5)),) for c in (1, 8, 64)},
        **{(5, c): (Schedule(6000, more=_slow_start(0.0018, 0.6)),) for c in (1, 8, 64)},
    },
    # As published, except that products are rounded to TF32: the one difference, and half the time.
    Scale.PAPER: {
        (n, c): (Schedule(100_000, seeds=TWO_THEN_THREE, more={"dtype": "tf32"}),)
        for n in (1, 3, 5)
        for c in (1, 8, 64)
    },
}

#: (layers, copies) -> schedules at the paper's rate, beside the fast ones: where several heads
#: share one layer, what a head learns depends on the schedule.
GENTLE: ByDepth = {
    Scale.GPU: {(1, 8): (Schedule(3000),), (1, 64): (Schedule(1000),)},
}

#: (positions, layers) -> schedule, d=64, N=16, 8 copies. The paper: 200,000 steps, rate 0.005.
POSITIONS: dict[Scale, dict[tuple[str, int], Schedule]] = {
    Scale.MINIATURE: {
        (positions, 1): Schedule(20, (2, 8), more=_TINY)
        for positions in ("none", "additive", "concatenated")
    },
    Scale.LAPTOP: {
        (positions, 1): Schedule(1500, (1, 4, 16), more=_SMALL | {"learning_rate": 0.01})
        for positions in ("none", "additive", "concatenated")
    },
    Scale.GPU: {
        ("none", 1): Schedule(2500, more=_slow_start(0.01, 0.2)),
        ("none", 3): Schedule(3000, (1, 4, 16, 64), more=_slow_start(0.006, 0.4)),
        ("additive", 1): Schedule(2500, more=_slow_start(0.01, 0.2)),
        ("additive", 3): Schedule(3000, (1, 4, 16, 64), more=_slow_start(0.006, 0.4)),
        ("concatenated", 1): Schedule(2500, more=_slow_start(0.005, 0.3)),
        ("concatenated", 3): Schedule(3000, (1, 4, 16, 64), more=_slow_start(0.0018, 0.5)),
    },
    Scale.PAPER: {
        (positions, layers): Schedule(200_000, seeds=FIVE)
        for positions in ("none", "additive", "concatenated")
        for layers in (1, 3)
    },
}

#: Tokens -> schedule, d=64, two layers, 64 copies. At 256 tokens rank 1 needs micro-batches. Steps
#: after the last whole epoch (the last 100 of 2,500) are in no best training loss; and the longer
#: an epoch (400 steps of batch 64, 800 of 32, 1,600 of 16), the further that mean lags behind.
ROLE_OF_N: dict[Scale, dict[int, Schedule]] = {
    Scale.MINIATURE: {n: Schedule(20, (2, 8), more=_TINY) for n in (3, 6)},
    Scale.LAPTOP: {n: Schedule(1500, (1, 4, 16), more=_SMALL_SLOW) for n in (4, 8, 16)},
    Scale.GPU: {
        4: Schedule(2500, (1, 8, 16, 32, 64), more=_slow_start(0.006, 0.4)),
        16: Schedule(2000, (1, 8, 16, 32, 64), more=_slow_start(0.006, 0.4)),
        64: Schedule(2400, (1, 8, 16, 32, 64), more=_slow_start(0.0055, 0.5, batch=32)),
        256: Schedule(1600, (8, 16, 32, 64), more=_slow_start(0.0045, 0.5, batch=16)),
    },
    Scale.PAPER: {
        4: Schedule(200_000, (1, 8, 16, 32, 64), FIVE),
        16: Schedule(200_000, (1, 8, 16, 32, 64), FIVE),
        64: Schedule(200_000, (1, 8, 16, 32, 64), FIVE, {"micro_batches": 4}),
        256: Schedule(200_000, (1, 8, 16, 32, 64), FIVE, {"micro_batches": 32}),
    },
}

#: Width -> schedule, N=16, two layers, 8 copies; ranks are d over 1, 2, 4, 8, 16. Width 256 ends in
#: zero output at this rate, and at every other that was tried: what is the same for all tokens
#: drowns them (docs/log.md).
ROLE_OF_D: dict[Scale, dict[int, Schedule]] = {
    Scale.MINIATURE: {d: Schedule(20, (d // 4, d), more=_TINY) for d in (4, 8)},
    Scale.LAPTOP: {d: Schedule(1500, (d // 4, d // 2, d), more=_SMALL_SLOW) for d in (8, 16)},
    Scale.GPU: {
        d: Schedule(4400, tuple(d // k for k in (16, 8, 4, 2, 1)), more=_slow_start(rate, 0.5))
        for d, rate in ((16, 0.01), (64, 0.01), (128, 0.006), (256, 0.003))
    },
    Scale.PAPER: {
        d: Schedule(200_000, tuple(d // k for k in (16, 8, 4, 2, 1)), FIVE)
        for d in (16, 64, 128, 256)
    },
}

#: Tokens -> schedule, d=16, two layers, 16 copies: fixed low rank, growing N.
LARGE_N: dict[Scale, dict[int, Schedule]] = {
    Scale.MINIATURE: {n: Schedule(20, (2, 8), more=_TINY) for n in (4, 12)},
    Scale.LAPTOP: {n: Schedule(1500, (2, 16), more=_SMALL_SLOW) for n in (4, 8, 16, 32)},
    Scale.GPU: {
        n: Schedule(2500, (2, 16), more=_slow_start(0.006, 0.4)) for n in (4, 8, 16, 32, 64)
    },
    Scale.PAPER: {n: Schedule(100_000, (1, 2, 4, 8, 16), FIVE) for n in (4, 8, 16, 32, 64, 128)},
}

_TINY_CONTEXT = {"dimensions": 2, "points": 5, "width": 8, "layers": 2, "evaluation": 32}

#: What two cores train in a quarter of an hour.
_SMALL_CONTEXT = {
    "dimensions": 5,
    "points": 11,
    "width": 32,
    "layers": 4,
    "learning_rate": 3e-3,
    "curriculum": 0.2,
}

#: A short run needs a larger rate, but at 3e-3 one head learns nothing; and a slower curriculum.
_SHORT_CONTEXT = {"learning_rate": 1e-3, "curriculum": 0.2, "evaluation": 512, "dtype": "tf32"}

#: Twice the dimensions and points of the paper's figure.
_HIGH = {"dimensions": 40, "points": 81}

#: Heads -> schedule; ``more`` holds sizes. The paper: 500,000 steps at rate 1e-4, batch 64.
IN_CONTEXT: dict[Scale, dict[int, Schedule]] = {
    Scale.MINIATURE: {
        h: Schedule(20, more=_TINY_CONTEXT | {"batch": 8, "epoch": 10}) for h in (1, 4)
    },
    Scale.LAPTOP: {h: Schedule(6000, more=_SMALL_CONTEXT) for h in (1, 2, 4, 8, 16)},
    Scale.GPU: {h: Schedule(16_000, more=_SHORT_CONTEXT) for h in (1, 2, 4, 8, 16)},
    Scale.PAPER: {h: Schedule(500_000, seeds=FIVE) for h in (1, 2, 4, 8, 16)},
}

IN_CONTEXT_HIGH: dict[Scale, dict[int, Schedule]] = {
    Scale.GPU: {h: Schedule(3500, more=_SHORT_CONTEXT | _HIGH) for h in (1, 4, 16)},
    Scale.PAPER: {h: Schedule(500_000, seeds=FIVE, more=_HIGH) for h in (1, 2, 4, 8, 16)},
}

#: Width -> (heads, schedule): rank-one heads without an MLP on two points, fresh data.
PAIRS: dict[Scale, dict[int, tuple[tuple[int, ...], Schedule]]] = {
    Scale.MINIATURE: {
        8: ((1, 8), Schedule(30, (1,), more={"batch": 32, "evaluation": 256, "epoch": 10}))
    },
    Scale.LAPTOP: {
        8: ((1, 4, 16, 64), Schedule(3000, (1,), more={"evaluation": 4096})),
        16: ((1, 4, 16, 64), Schedule(3000, (1,), more={"evaluation": 4096})),
    },
    Scale.GPU: {
        d: ((1, 4, 16, 64, 256), Schedule(5000, (1,), more={"batch": 1024}))
        for d in (8, 16, 32, 64)
    },
    Scale.PAPER: {
        d: ((1, 4, 16, 64, 256, 1024), Schedule(100_000, (1,), FIVE, {"batch": 1024}))
        for d in (8, 16, 32, 64)
    },
}


def scheduled(schedule: Schedule, **fixed: Any) -> list[Spec]:
    """Return the specs of a schedule: both protocols, every rank and group of seeds.

    >>> [spec.protocol for spec in scheduled(Schedule(10, ranks=(2,)), width=4)]
    ['fixed', 'fresh']
    """
    return grid(
        TrainNeighbours,
        {**fixed, "steps": schedule.steps, **schedule.more},
        protocol=PROTOCOLS,
        seeds=schedule.seeds,
        rank=schedule.ranks,
    )


def two_layers(
    field: str,
    table: Mapping[Scale, Mapping[int, Schedule]],
    sizes: Mapping[Scale, Mapping[str, int]],
) -> Callable[[Scale], list[Spec]]:
    """Return the specs of each scale: two layers at the paper's rate, by a field, cheap first.

    ``sizes`` has the other sizes of each scale; the scale gpu has those of the paper.

    >>> table = {Scale.GPU: {4: Schedule(10, ranks=(2,))}}
    >>> specs = two_layers("tokens", table, {Scale.PAPER: {"width": 8, "copies": 2}})(Scale.GPU)
    >>> [(spec.tokens, spec.layers, spec.learning_rate) for spec in specs]
    [(4, 2, 0.005), (4, 2, 0.005)]
    """

    def questions(scale: Scale) -> list[Spec]:
        fixed = {**sizes.get(scale, sizes[Scale.PAPER]), "layers": 2, "learning_rate": 0.005}
        return cheap_first(
            spec
            for value, schedule in table[scale].items()
            for spec in scheduled(schedule, **{field: value}, **fixed)
        )

    return questions
