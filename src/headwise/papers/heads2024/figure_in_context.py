"""In-context linear regression: the best number of heads at one width, and what more cost."""

from __future__ import annotations

from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.training_cost import cheap_first
from headwise.papers.comparison import OTHER_SIZES
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.papers.heads2024.remarks import schedule_remarks
from headwise.papers.heads2024.schedules import IN_CONTEXT, IN_CONTEXT_HIGH
from headwise.papers.kinds.trained_rows import (
    Place,
    diverged_remark,
    seeds_by,
    trained_cell,
    trained_curve,
)
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
    points = seeds_by([r for r in rows if r["dimensions"] == DIMENSIONS], "heads", "test_score")
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
            "What is compared are test errors of fresh data: this task has no fixed set. "
            "Untrained, the error is the number of dimensions.",
            *diverged_remark(rows),
        ),
    )


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """Judge the fewest dimensions; runs in miniature are too short to judge."""
    if scale is Scale.MINIATURE:
        return ()
    least = min(row["dimensions"] for row in rows)
    points = seeds_by([r for r in rows if r["dimensions"] == least], "heads", "test_score")
    errors = {heads: point.mean for heads, point in points.items()}
    fewest, most, least_error = errors[min(errors)], errors[max(errors)], min(errors.values())
    return (
        Claim(
            "the most heads have at least twice the error of the best number",
            most > 2 * least_error,
            "figure of in-context regression",
        ),
        Claim(
            "a few heads are better than one",
            fewest > least_error,
            "figure of in-context regression",
        ),
    )


def _table(rows: list[Row]) -> Table:
    """Return mean, spread and least over seeds, as numbers beside the figure."""
    lines = []
    for dimensions in sorted({row["dimensions"] for row in rows}):
        own = [row for row in rows if row["dimensions"] == dimensions]
        for heads, found in seeds_by(own, "heads", "test_score").items():
            numbers = (found.mean, found.spread, found.least)
            lines.append((dimensions, heads, *(round(n, 3) for n in numbers), found.count))
    columns = ("dimensions", "heads", "mean", "standard deviation", "least", "seeds")
    return Table(columns, tuple(lines), title="Squared error at the last point")


def _printed() -> dict[Place, float]:
    return {int(r["heads"]): float(r["loss"]) for r in printed_table("heads2024_in_context")}


def _panel(rows: list[Row], dimensions: int, printed: dict[Place, float]) -> Panel:
    own = [row for row in rows if row["dimensions"] == dimensions]
    curve = trained_curve(f"width {own[0]['width']}", seeds_by(own, "heads", "test_score"), printed)
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
    "Three things differ from the authors' GPT-2 model at every scale. The rate rises over the "
    "first 5 % of the steps and falls along a cosine; theirs is constant. Weights start at "
    "N(0, 1/fan-in); theirs at N(0, 0.02²), and embedding and read-out at PyTorch's default. GELU "
    "is the exact one; theirs is the tanh form. The norm is theirs: LayerNorm before each part and "
    "once at the end."
)

FIGURE_IN_CONTEXT = Exhibit(
    name="heads2024/figure_in_context",
    title="In-context linear regression against the number of heads",
    caption="Squared error after all examples but one, of a causal model whose heads share its "
    "width; the paper's has width 48 and 12 layers. Mean over seeds, band of one standard "
    "deviation, minimum dotted; hollow: printed.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in IN_CONTEXT},
    present=_present,
    printed="the figure of in-context regression",
    compared_at=(Scale.GPU, Scale.PAPER),
)
