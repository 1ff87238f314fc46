"""Table 2: rank against the head dimension for four input distributions."""

from __future__ import annotations

from headwise.papers.comparison import Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled, rank_cell
from headwise.papers.kinds.rank_sweep import (
    SMALLER,
    curves_and_law,
    levels_near,
    miniature_sweep,
    points_by,
    printed_sweep,
    rank_panel,
)
from headwise.papers.printed import printed_table
from headwise.runs import Spec

LAWS = ("normal(0,1)", "normal(0,100)", "uniform(-1,1)", "uniform(-100,100)")
HEAD_DIMS = (2, 4, 8, 16, 32, 64, 96)

#: As people write them.
NAMES = {
    "normal(0,1)": "N(0, 1)",
    "normal(0,100)": "N(0, 100)",
    "uniform(-1,1)": "U(−1, 1)",
    "uniform(-100,100)": "U(−100, 100)",
}

Points = dict[str, dict[Place, Pooled]]


def _paper() -> list[Spec]:
    return printed_sweep(HEAD_DIMS, inputs=LAWS)


def _miniature() -> list[Spec]:
    return miniature_sweep(inputs=LAWS)


def _present(answers: Answers) -> Presentation:
    points = points_by(answers, "inputs")
    printed = _printed() if answers.scale is Scale.PAPER else {}
    beside: dict[str, dict[Place, float]] = {
        NAMES[inputs]: {r: mean for (named, r), (mean, _) in printed.items() if named == inputs}
        for inputs in LAWS
    }
    curves = curves_and_law(answers, {NAMES[law]: one for law, one in points.items()}, beside)
    return Presentation(
        panels=(rank_panel("Rank levels off whatever the inputs", curves),),
        cells=_cells(points, printed),
        claims=_claims(points) if printed else (),
        remarks=_remarks(answers),
    )


def _printed() -> dict[tuple[str, int], tuple[float, float]]:
    return {
        (row["inputs"], int(row["head_dim"])): (float(row["mean"]), float(row["std"]))
        for row in printed_table("rank2026_table_2")
    }


def _cells(points: Points, printed: dict[tuple[str, int], tuple[float, float]]) -> tuple[Cell, ...]:
    return tuple(
        rank_cell(f"{NAMES[inputs]}, d_h {r}", points[inputs][r], mean, std)
        for (inputs, r), (mean, std) in printed.items()
    )


def _claims(points: Points) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            f"{NAMES[inputs]}: rank levels off near 0.63 (at d_h = 96, within 0.05).",
            near,
            "§2.2; 0.05 is our measure",
        )
        for inputs, near in ((inputs, levels_near(points[inputs])) for inputs in LAWS)
    )


def _remarks(answers: Answers) -> tuple[str, ...]:
    sizes = {
        inputs: answers.rows(kind="measure_rank", inputs=inputs)[0]["logit_size"] for inputs in LAWS
    }
    shown = ", ".join(f"{NAMES[inputs]} {size:.3g}" for inputs, size in sizes.items())
    why = (
        "The larger the logits, the nearer is softmax to hardmax and the lower its rank. The "
        f"logits of the narrowest heads have root mean square {shown}. "
        "U(−1, 1) has a third of the variance of N(0, 1), so its attention is the softest here "
        "and its rank the highest."
    )
    return (why, _PRINTED_GAUSSIAN) if answers.scale is Scale.PAPER else (SMALLER, why)


#: Where the paper and we differ, and what speaks for either.
_PRINTED_GAUSSIAN = (
    "N(0, 100) has logits a hundred times those of N(0, 1), so its rank should be that of "
    "hardmax, as is that of U(−100, 100): there our means, the law and the printed means agree. "
    "The printed means of N(0, 100) lie above all of these, some even above those of N(0, 1). "
    "If 100 were the standard deviation logits would be larger still, and rank no higher."
)

TABLE_2 = Exhibit(
    name="rank2026/table_2",
    title="Table 2: rank against the head dimension for four input distributions",
    caption="As Figure 1 (width 384, 100 tokens, batch 32, N(0, 1) weights, T = √d_h, "
    "ε = 1e-8, float64), for inputs with independent entries of four laws; the second number "
    "of N is the variance. Bands: one standard deviation of single matrices. Hollow: printed. "
    "Thin line: the finite law of hardmax, which no scale of the inputs changes.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Table 2",
    compared_at=(Scale.PAPER,),
)
