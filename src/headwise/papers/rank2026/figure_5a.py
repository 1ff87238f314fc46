"""Figure 5a: rank against the head dimension for four model widths."""

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
from headwise.runs import Spec

WIDTHS = (384, 768, 1152, 1536)


def _paper() -> list[Spec]:
    return printed_sweep(width=WIDTHS)


def _miniature() -> list[Spec]:
    return miniature_sweep(width=(16, 32))


def _present(answers: Answers) -> Presentation:
    points = points_by(answers, "width")
    curves = curves_and_law(answers, {f"width {width}": one for width, one in points.items()})
    return Presentation(
        panels=(rank_panel("The width of the model hardly matters", curves),),
        claims=_claims(points) if answers.scale is Scale.PAPER else (),
        remarks=_remarks(answers, points),
    )


def _claims(points: dict[int, dict[Place, Pooled]]) -> tuple[Claim, ...]:
    apart = widest(points.values())
    return (
        Claim(
            "The width hardly matters: at every head dimension all widths lie within 0.05.",
            apart <= NEAR,
            "Figure 5a; 0.05 is our measure",
        ),
        *(
            Claim(
                f"Width {width}: rank levels off near 0.63 (at d_h = 192, within 0.05).",
                near,
                "Figure 5a",
            )
            for width, near in ((width, levels_near(found)) for width, found in points.items())
        ),
    )


def _remarks(answers: Answers, points: dict[int, dict[Place, Pooled]]) -> tuple[str, ...]:
    grown = (
        "Logits grow with the width (N(0, 1) weights are not scaled), so softmax comes nearer "
        "to hardmax and rank falls towards the law. The largest distance between two widths "
        f"at one head dimension is {widest(points.values()):.3f}."
    )
    return (grown,) if answers.scale is Scale.PAPER else (SMALLER, grown)


FIGURE_5A = Exhibit(
    name="rank2026/figure_5a",
    title="Figure 5a: rank against the head dimension for four widths",
    caption="As Figure 1 (100 tokens, batch 32, N(0, 1) weights and inputs, T = √d_h, "
    "ε = 1e-8, float64), for models of four widths. Bands: one standard deviation of single "
    "matrices. Thin line: the finite law of hardmax.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 5a",
)
