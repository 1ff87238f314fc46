"""Figure 1: rank rises with the head dimension, and levels off."""

from __future__ import annotations

import math

from headwise.papers.comparison import Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled, grows, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import (
    HEAD_DIMS,
    SMALLER,
    law,
    law_sweep,
    levels_near,
    levels_off,
    rank_panel,
    rank_sweep,
)
from headwise.report import Table
from headwise.runs import Spec


def _paper() -> list[Spec]:
    return [*rank_sweep({}), *law_sweep({"tokens": 100})]


def _miniature() -> list[Spec]:
    dims = (2, 8, 32)
    return [
        *rank_sweep({"width": 64, "tokens": 40, "batch": 4}, dims),
        *law_sweep({"tokens": 40, "width": 64}, dims),
    ]


def _present(answers: Answers) -> Presentation:
    points = pooled_by(answers.rows(kind="measure_rank"), "head_dim")
    (tokens,) = answers.values("tokens")
    curve = rank_curve(f"{tokens} tokens", points, law=law(answers))
    return Presentation(
        panels=(rank_panel("Rank rises with the head dimension, then levels off", [curve]),),
        tables=(_table(answers, points),),
        cells=_cells(points) if answers.scale is Scale.PAPER else (),
        claims=_claims(points) if answers.scale is Scale.PAPER else (),
        remarks=_remarks(answers.scale),
    )


def _table(answers: Answers, points: dict[Place, Pooled]) -> Table:
    rows = []
    for r, found in points.items():
        predicted = answers.row(kind="predict_rank", head_dim=r)
        soft = round(predicted["softmax_ratio"], 4) if predicted["softmax_valid"] else None
        undecided = sum(row["undecided"] for row in answers.rows(kind="measure_rank", head_dim=r))
        rows.append(
            (
                r,
                found.count,
                round(found.mean, 4),
                round(found.stderr, 4),
                round(found.std, 4),
                round(predicted["ratio"], 4),
                soft,
                undecided,
            )
        )
    columns = (
        "head dimension",
        "matrices",
        "rank / length",
        "± standard error",
        "standard deviation",
        "law of hardmax",
        "law of this softmax",
        "undecided",
    )
    return Table(columns, tuple(rows), title="Measured and predicted")


#: What the text says of the figure, in numbers: words, printed value, head dimensions.
IN_WORDS = (
    ("gain from d_h 8 to 16 (§2.1, text)", 0.10, (8, 16)),
    ("gain from d_h 96 to 192 (§2.1, text)", 0.01, (96, 192)),
)


def _cells(points: dict[Place, Pooled]) -> tuple[Cell, ...]:
    """The numbers that the text names; the figure's own values are not on record."""
    gains = tuple(
        Cell(
            name,
            printed,
            points[two].mean - points[one].mean,
            math.hypot(points[one].stderr, points[two].stderr),
        )
        for name, printed, (one, two) in IN_WORDS
    )
    last = points[max(points)]
    return (*gains, Cell("level at d_h 192 (§2.1, text)", 0.63, last.mean, last.stderr))


def _claims(points: dict[Place, Pooled]) -> tuple[Claim, ...]:
    return (
        Claim("Rank grows with the head dimension.", grows(points), "§2.1"),
        Claim(
            "It levels off: the last doubling adds less than a quarter of the first.",
            levels_off(points),
            "§2.1; a quarter is our measure",
        ),
        Claim(
            f"It levels off near 0.63 (at d_h = {max(points)}, within 0.05).",
            levels_near(points),
            "§2.1; 0.05 is our measure",
        ),
    )


def _remarks(scale: Scale) -> tuple[str, ...]:
    if scale is not Scale.PAPER:
        return (SMALLER,)
    return (
        "The bound of Theorem 1 is one for hardmax. Softmax at T = √d_h is not quite hardmax: "
        "its ε-rank lies above the law of hardmax and, for the widest heads, may lie above "
        "1 − 1/e. The law of this softmax takes the size of the logits into account; it is "
        "left out where it is not valid. Undecided counts are those that the rounding of q·k "
        "leaves between two numbers; the middle is taken.",
    )


FIGURE_1 = Exhibit(
    name="rank2026/figure_1",
    title="Figure 1: rank against the head dimension",
    caption=f"Rank over length of attention at initialisation: one block, width 384, 100 tokens, "
    f"batch 32, N(0, 1) weights and inputs, T = √d_h, ε = 1e-8, float64; every head of "
    f"d_h = {', '.join(map(str, HEAD_DIMS))}, four seeds from 16 on. Band: one standard "
    "deviation of single matrices. Thin line: the finite law of hardmax.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 1, §2.1",
    compared_at=(Scale.PAPER,),
)
