"""Figure 5b: rank against the head dimension for four temperatures."""

from __future__ import annotations

from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled, widest
from headwise.papers.kinds.rank_sweep import (
    NEAR,
    SMALLER,
    curves_and_law,
    levels_near,
    miniature_sweep,
    points_by,
    printed_sweep,
    rank_panel,
)
from headwise.report import Table
from headwise.runs import Spec

#: The whole divisor of the logits: there is no further √d_h.
TEMPERATURES = (1e-5, 1e-3, 1e-1, 1.0)

Points = dict[float, dict[Place, Pooled]]


def _paper() -> list[Spec]:
    return printed_sweep(temperature=TEMPERATURES)


def _miniature() -> list[Spec]:
    return miniature_sweep(temperature=TEMPERATURES)


def _present(answers: Answers) -> Presentation:
    points = points_by(answers, "temperature")
    curves = curves_and_law(answers, {f"T = {heat:g}": one for heat, one in points.items()})
    return Presentation(
        panels=(rank_panel("The temperature hardly matters below one", curves),),
        tables=(_certainty(answers),),
        claims=_claims(points) if answers.scale is Scale.PAPER else (),
        remarks=(_REMARK,) if answers.scale is Scale.PAPER else (SMALLER, _REMARK),
    )


def _certainty(answers: Answers) -> Table:
    rows = []
    for heat in TEMPERATURES:
        found = answers.rows(kind="measure_rank", temperature=heat)
        undecided = sum(row["undecided"] for row in found)
        rows.append(
            (
                f"{heat:g}",
                sum(row["count"] for row in found),
                undecided,
                f"{max(row['logit_size'] for row in found):.2g}",
            )
        )
    return Table(
        ("T", "matrices", "undecided", "largest root mean square logit"),
        tuple(rows),
        frozenset((i, 2) for i, row in enumerate(rows) if row[2]),
        title="How sure the counts are",
    )


def _claims(points: Points) -> tuple[Claim, ...]:
    return (
        Claim(
            "The temperature hardly matters: at every head dimension all lie within 0.05.",
            widest(points.values()) <= NEAR,
            "Figure 5b; 0.05 is our measure",
        ),
        *(
            Claim(
                f"T = {heat:g}: rank levels off near 0.63 (at d_h = 192, within 0.05).",
                near,
                "Figure 5b",
            )
            for heat, near in ((heat, levels_near(found)) for heat, found in points.items())
        ),
    )


_REMARK = (
    "T is the whole divisor. At T = 1e-5 logits are so large that their rounding reaches 1e-7, "
    "yet rows are so nearly one-hot that it hardly moves a singular value: a count is undecided "
    "only where two logits of a row are nearly tied. The middle of an undecided count is taken."
)

FIGURE_5B = Exhibit(
    name="rank2026/figure_5b",
    title="Figure 5b: rank against the head dimension for four temperatures",
    caption="As Figure 1 (width 384, 100 tokens, batch 32, N(0, 1) weights and inputs, "
    "ε = 1e-8, float64), with the whole divisor of the logits fixed. Bands: one standard "
    "deviation of single matrices. Thin line: the finite law of hardmax, the limit T → 0.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 5b",
)
