"""In-context linear regression: the best number of heads at one width, and what more cost."""

from __future__ import annotations

import math
from functools import partial

from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.training_cost import cheap_first
from headwise.papers.comparison import OTHER_SIZES, STANDARD_ERRORS
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, matching
from headwise.papers.heads2024.schedules import IN_CONTEXT, IN_CONTEXT_HIGH
from headwise.papers.kinds.trained_rows import (
    Coordinate,
    OverSeeds,
    diverged_remark,
    seeds_by,
    trained_cell,
    trained_curve,
)
from headwise.papers.kinds.training_remarks import schedule_remarks
from headwise.papers.printed import printed_table
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

#: Dimensions of the paper's figure.
DIMENSIONS = 20


def _questions(scale: Scale) -> list[Spec]:
    tables = (IN_CONTEXT.get(scale, {}), IN_CONTEXT_HIGH.get(scale, {}))
    return cheap_first(
        spec
        for table in tables
        for heads, schedule in table.items()
        for spec in grid(
            TrainInContext,
            {"heads": heads, "steps": schedule.steps, **schedule.more},
            seeds=schedule.seeds,
        )
    )


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    comparable = answers.scale in (Scale.GPU, Scale.PAPER)
    printed = _printed() if comparable else {}
    dimensions = sorted({row["dimensions"] for row in rows})
    points = _errors(rows, DIMENSIONS)
    return Presentation(
        panels=tuple(_panel(rows, d, printed if d == DIMENSIONS else {}) for d in dimensions),
        cells=tuple(
            trained_cell(f"{h} head{'s' * (h != 1)}", points[h], loss)
            for h, loss in printed.items()
            if h in points
        ),
        tables=(_table(rows),),
        claims=_claims(rows, answers.scale),
        uncompared=OTHER_SIZES,
        remarks=(
            *schedule_remarks(answers, "500,000 steps of 64 and four or five"),
            _DIFFERENCES,
            "Test errors on fresh data are compared: this task has no fixed set. "
            "Untrained, the error is the number of dimensions.",
            *_undecided(rows),
            *diverged_remark(rows),
        ),
    )


def _errors(rows: list[Row], dimensions: int) -> dict[Coordinate, OverSeeds]:
    """Return the error for each number of heads."""
    return seeds_by(matching(rows, dimensions=dimensions), "heads", "test_score")


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """Judge the fewest dimensions; runs in miniature are too short to judge."""
    if scale is Scale.MINIATURE:
        return ()
    least = min(row["dimensions"] for row in rows)
    points = _errors(rows, least)
    errors = {heads: point.mean for heads, point in points.items()}
    claims = [
        Claim(
            "the most heads have at least twice the error of the best number",
            errors[max(errors)] > 2 * min(errors.values()),
            "figure of in-context regression; factor 2 chosen by us",
        )
    ]
    if {1, 2} <= points.keys() and _apart(points[1], points[2]):
        printed = "figure of in-context regression, read off"
        claims.append(Claim("two heads are better than one", errors[2] < errors[1], printed))
    return tuple(claims)


def _apart(one: OverSeeds, two: OverSeeds) -> bool:
    """Return whether two means differ by more than three combined standard errors."""
    return abs(one.mean - two.mean) > STANDARD_ERRORS * math.hypot(one.stderr, two.stderr)


def _undecided(rows: list[Row]) -> tuple[str, ...]:
    """Say so if the seeds do not tell whether two heads beat one, as they do in the paper."""
    points = _errors(rows, DIMENSIONS)
    if not {1, 2} <= points.keys() or _apart(points[1], points[2]):
        return ()
    return ("In the paper two heads are better than one. Here the seeds do not decide it.",)


def _table(rows: list[Row]) -> Table:
    """Return mean, spread and least over seeds, as numbers beside the figure."""
    lines = (
        {
            "dimensions": dimensions,
            "heads": heads,
            "mean": round(found.mean, 3),
            "standard deviation": round(found.spread, 3),
            "least": round(found.least, 3),
            "seeds": found.count,
        }
        for dimensions in sorted({row["dimensions"] for row in rows})
        for heads, found in _errors(rows, dimensions).items()
    )
    return Table.of(lines, title="Squared error at the last point")


def _printed() -> dict[Coordinate, float]:
    return {int(r["heads"]): float(r["loss"]) for r in printed_table("heads2024_in_context")}


def _panel(rows: list[Row], dimensions: int, printed: dict[Coordinate, float]) -> Panel:
    own = matching(rows, dimensions=dimensions)
    curve = trained_curve(f"width {own[0]['width']}", _errors(own, dimensions), printed)
    return Panel(
        f"{dimensions} dimensions, {own[0]['points']} points",
        "heads (rank = width / heads)",
        "squared error at the last point",
        (curve,),
        x_scale="log",
        y_scale="log",
        levels=(("trivial", own[0]["trivial"]),),
        x_ticks=tuple(sorted({row["heads"] for row in own})),
    )


_DIFFERENCES = (
    "Three things differ at every scale from the code of Garg et al. that the authors ran "
    "(repository dtsip/in-context-learning). The rate rises over the first 5 % of the steps and "
    "falls along a cosine; theirs is constant. Weights start at N(0, 1/fan-in); theirs is GPT-2's "
    "N(0, 0.02²), divided by √(2 × layers) where a part writes to the residual stream, with "
    "embedding and read-out at PyTorch's default. GELU is the exact one; theirs is the tanh form. "
    "The rest is theirs: LayerNorm before each part and once at the end, biases, positions learned "
    "from N(0, 0.02²), Adam, the interleaved tokens, the curriculum and the loss over all prefixes."
)

FIGURE_IN_CONTEXT = Exhibit(
    caption="Squared error after all examples but one, of a causal model whose heads share its "
    "width; the paper's has width 48 and 12 layers. Mean over seeds, band of one standard "
    "deviation. Dotted: minimum over seeds. Hollow: published.",
    questions={scale: partial(_questions, scale) for scale in IN_CONTEXT},
    present=_present,
    printed="the figure of in-context regression",
    compared_at=(Scale.GPU, Scale.PAPER),
)
