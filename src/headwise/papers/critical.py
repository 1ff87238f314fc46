"""The rank paper's critical head dimension, and how much noise, threshold and grid move it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headwise.papers.comparison import Cell
from headwise.papers.kinds.rank_rows import Coordinate, Pooled
from headwise.randomness import stream_seed
from headwise.report import Table
from headwise.theory.fluctuation import corrected_law
from headwise.theory.scaling import saturation_row

#: "Less than or around 0.01": as written, and what the published choices need.
THRESHOLDS = (0.010, 0.013)

#: The threshold that the published choices need.
NEEDED_THRESHOLD = THRESHOLDS[1]

#: Head dimensions between neighbouring rows of a finer or coarser table, all from 16 to 160.
STEPS = (4, 8, 16, 32)

_DRAWS = 2000


def critical_table(
    points: Mapping[int, Mapping[Coordinate, Pooled]], printed: Mapping[int, int]
) -> Table:
    """For each length: published, by two thresholds, under noise, and by the law on other grids."""
    rows = (
        {
            "tokens": n,
            "published": printed[n],
            **{f"measured, threshold {x:.3f}": critical_dim(_means(own), x) for x in THRESHOLDS},
            "under the noise of one run, threshold 0.013": _under_noise(own, seed=n),
            **{
                f"by the law, grid of {step}": critical_dim(_law_on_grid(n, step)) for step in STEPS
            },
        }
        for n, own in points.items()
    )
    return Table.of(rows, title="Critical head dimension: one rule, many answers")


def _means(points: Mapping[Coordinate, Pooled]) -> dict[int, float]:
    return {int(r): point.mean for r, point in points.items()}


def critical_dim(means: Mapping[int, float], threshold: float = NEEDED_THRESHOLD) -> str:
    """The head dimension that the paper's rule chooses, or that it lies above all of these."""
    found = saturation_row(list(means), list(means.values()), threshold)
    return f"above {max(means)}" if found is None else str(found)


def critical_of(
    points: Mapping[Coordinate, Pooled], threshold: float = NEEDED_THRESHOLD
) -> int | None:
    """The head dimension that the paper's rule chooses; None if it lies above all of these."""
    means = _means(points)
    return saturation_row(list(means), list(means.values()), threshold)


def _law_on_grid(n: int, step: int) -> dict[int, float]:
    return {r: float(corrected_law(n, r)) for r in range(16, 161, step)}


def critical_cells(
    points: Mapping[int, Mapping[Coordinate, Pooled]], printed: Mapping[int, int]
) -> tuple[Cell, ...]:
    """The published critical head dimensions against the rule on measured means.

    The rule chooses a row, so its noise is the set of rows that repeated runs choose. A published
    row that such runs choose less often than a value beyond three standard errors (1 in 740)
    differs.
    """
    return tuple(_critical_cell(n, points[n], row) for n, row in printed.items() if n in points)


def _critical_cell(n: int, points: Mapping[Coordinate, Pooled], printed: int) -> Cell:
    chosen = np.array([_number(one, points) for one in _repeated(points, seed=n)])
    measured = _number(critical_dim(_means(points)), points)
    side = 0.00135 if printed < measured else 1 - 0.00135
    reach = abs(measured - float(np.quantile(chosen, side, method="nearest")))
    return Cell(
        f"critical d_h of {n} tokens",
        float(printed),
        measured,
        float(chosen.std()),
        statistic="by the rule, threshold 0.013",
        reach=reach,
    )


def _number(choice: str, points: Mapping[Coordinate, Pooled]) -> float:
    """A choice as a number; above all rows counts as twice the last."""
    return float(choice) if choice.isdigit() else 2.0 * max(points)


def _repeated(points: Mapping[Coordinate, Pooled], seed: int) -> list[str]:
    """What the rule chooses when the means are measured again, with the noise of one run."""
    generator = np.random.default_rng(stream_seed(seed, "critical head dimension"))
    dims = [int(r) for r in points]
    mean = np.array([point.mean for point in points.values()])
    error = np.array([point.run_stderr for point in points.values()])
    drawn = generator.normal(mean, error, (_DRAWS, len(dims)))
    return [critical_dim(dict(zip(dims, map(float, row), strict=True))) for row in drawn]


def _under_noise(points: Mapping[Coordinate, Pooled], seed: int) -> str:
    """How often each answer would come out if the means were measured again, with noise."""
    answers = _repeated(points, seed)
    counts = sorted(((answers.count(a), a) for a in set(answers)), reverse=True)
    return ", ".join(f"{a} ({c / _DRAWS:.0%})" for c, a in counts[:4])
