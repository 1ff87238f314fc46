"""Figure 1: rank rises with the head dimension, and levels off."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headwise.papers.comparison import Cell
from headwise.papers.exhibit import Answers, Claim
from headwise.papers.kinds.rank_rows import Coordinate, Pooled, grows
from headwise.papers.kinds.rank_sweep import (
    HEAD_DIMS,
    Points,
    RankSweep,
    levels_near,
    levels_off,
)
from headwise.report import Table


def _table(answers: Answers, points: Points) -> tuple[Table, ...]:
    rows = []
    for r, found in _only(points).items():
        predicted = answers.row(kind="predict_rank", head_dim=r)
        measured = answers.rows(kind="measure_rank", head_dim=r)
        soft = round(predicted["softmax_ratio"], 4) if predicted["softmax_valid"] else None
        rows.append(
            {
                "head dimension": r,
                "matrices": found.count,
                "rank / length": round(found.mean, 4),
                "± standard error": round(found.stderr, 4),
                "standard deviation": round(found.std, 4),
                "law of hardmax": round(predicted["ratio"], 4),
                "law of this softmax": soft,
                "undecided": sum(row["undecided"] for row in measured),
            }
        )
    return (Table.of(rows, title="Measured and predicted"),)


def _only(points: Points) -> Mapping[Coordinate, Pooled]:
    """The points of the one length."""
    (found,) = points.values()
    return found


#: What the text says of the figure, in numbers: words, published value, head dimensions.
IN_WORDS = (
    ("gain from d_h 8 to 16 (§2.1, text)", 0.10, (8, 16)),
    ("gain up to d_h 192 (§2.1, text; from 96 is our reading)", 0.01, (96, 192)),
)


def _cells(points: Points) -> tuple[Cell, ...]:
    """The numbers that the text names; the figure's own values are not on record."""
    found = _only(points)
    gains = tuple(
        Cell(
            name,
            printed,
            found[two].mean - found[one].mean,
            math.hypot(found[one].stderr, found[two].stderr),
        )
        for name, printed, (one, two) in IN_WORDS
    )
    last = found[max(found)]
    return (*gains, Cell("level at d_h 192 (§2.1, text)", 0.63, last.mean, last.stderr))


def _claims(points: Points) -> tuple[Claim, ...]:
    found = _only(points)
    return (
        Claim("Rank grows with the head dimension.", grows(found), "§2.1"),
        Claim(
            "It levels off: the last doubling adds less than a quarter of the first.",
            levels_off(found),
            "§2.1; threshold of a quarter chosen by us",
        ),
        Claim(
            f"It levels off near 0.63 (at d_h = {max(found)}, within 0.05).",
            levels_near(found),
            "§2.1; threshold 0.05 chosen by us",
        ),
    )


_REMARK = (
    "The bound of Theorem 1 holds for hardmax. Softmax at T = √d_h is not quite hardmax: "
    "its ε-rank lies above the law of hardmax and, for the widest heads, may lie above "
    "1 − 1/e. The law of this softmax takes the size of the logits into account; it is "
    "left out where it is not valid. Undecided counts are those that the rounding of q·k "
    "leaves between two numbers; the middle is taken."
)

FIGURE_1 = RankSweep(
    varied="tokens",
    values=(100,),
    label="{} tokens".format,
    miniature=(40,),
    small=({"width": 64}, (2, 8, 32)),
    sizes={},
    panel="Rank rises with the head dimension, then levels off",
    claims=_claims,
    more=lambda points, cells: (_REMARK,),
    tables=_table,
    cells=_cells,
).exhibit(
    f"Rank over length of attention at initialisation: one block, width 384, 100 tokens, "
    f"batch 32, N(0, 1) weights and inputs, T = √d_h, ε = 1e-8, float64; every head of "
    f"d_h = {', '.join(map(str, HEAD_DIMS))}, four seeds from 16 on. Band: one standard "
    "deviation of single matrices. Thin line: the finite law of hardmax.",
    printed="Figure 1, §2.1",
)
