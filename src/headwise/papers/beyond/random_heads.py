"""What the exhibits about random heads ask and read: simulated hardmax ranks, and the law's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwise.experiments.predict_rank import PredictRank
from headwise.experiments.simulate_long_rank import SimulateLongRank
from headwise.experiments.simulate_rank import SimulateRank
from headwise.papers.exhibit import Answers
from headwise.runs import Row, Spec

#: Up to here heads are drawn again and again; beyond, the keys of one head are sample enough.
LONGEST_REPEATED = 2**14

#: Keys drawn for one mean in miniature, on a CPU and on a GPU. The standard error is below
#: 0.35/√keys with 2n queries for each set of keys, as ``SimulateRank`` draws them: 0.005, 0.002
#: and 0.001.
FEW_KEYS, CPU_KEYS, GPU_KEYS = 2**12, 2**15, 2**17

#: Keys drawn for one mean of long heads, with n queries: below 0.5/√keys, 0.001 or less.
LONG_KEYS = 2**18

#: Fewer heads would give no standard error to rely on.
FEWEST_DRAWS = 4


@dataclass(frozen=True)
class Point:
    """One length and head dimension: simulated share of columns used, and theory's values."""

    tokens: int
    head_dim: int
    mean: float
    stderr: float
    law: float
    corrected: float
    barrier: float


def simulated(tokens: int, head_dim: int, keys: int = CPU_KEYS) -> Spec:
    """The simulation of a length and head dimension, with so many keys in all."""
    if tokens <= LONGEST_REPEATED:
        draws = max(FEWEST_DRAWS, keys // tokens)
        return SimulateRank(tokens=tokens, head_dim=head_dim, draws=draws)
    draws = max(1, LONG_KEYS // tokens)
    return SimulateLongRank(tokens=tokens, head_dim=head_dim, draws=draws, dtype="tensorfloat32")


def asked(cells: Iterable[tuple[int, int]], keys: int = CPU_KEYS) -> list[Spec]:
    """Simulation and law of every (length, head dimension)."""
    cells = list(cells)
    laws = [PredictRank(tokens=n, head_dim=r) for n, r in cells]
    return [*(simulated(n, r, keys) for n, r in cells), *laws]


def points_of(answers: Answers) -> dict[int, list[Point]]:
    """For each length, in rising order, its points in rising order of head dimension."""
    laws = {_cell(row): row for row in answers.rows(kind="predict_rank")}
    means = [row for row in answers.rows() if row["kind"] != "predict_rank"]
    found: dict[int, list[Point]] = {}
    for row in sorted(means, key=_cell):
        found.setdefault(row["tokens"], []).append(_point(row, laws[_cell(row)]))
    return found


def by_dimension(points: dict[int, list[Point]]) -> dict[int, list[Point]]:
    """The same points for each head dimension, in rising order of length."""
    every: Sequence[Point] = [point for found in points.values() for point in found]
    dims = sorted({point.head_dim for point in every})
    return {r: [point for point in every if point.head_dim == r] for r in dims}


def _cell(row: Row) -> tuple[int, int]:
    return row["tokens"], row["head_dim"]


def _point(row: Row, law: Row) -> Point:
    return Point(*_cell(row), row["mean"], row["stderr"], law["law"], law["ratio"], law["barrier"])
