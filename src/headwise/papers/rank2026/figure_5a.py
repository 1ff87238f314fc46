"""Figure 5a: rank against the head dimension for four model widths."""

from __future__ import annotations

from headwise.papers.exhibit import Answers, Exhibit
from headwise.papers.kinds.rank_rows import widest
from headwise.papers.kinds.rank_sweep import Points, RankSweep


def _grown(_: Answers, points: Points) -> str:
    return (
        "Logits grow with the width (N(0, 1) weights are not scaled), so softmax comes nearer "
        "to hardmax and rank falls towards the law. The largest distance between two widths "
        f"at one head dimension is {widest(points.values()):.3f}."
    )


SWEEP = RankSweep(
    field="width",
    values={width: f"width {width}" for width in (384, 768, 1152, 1536)},
    miniature=(16, 32),
    panel="The width of the model hardly matters",
    place="Figure 5a",
    alike=(
        "The width hardly matters: at every head dimension all widths lie within 0.05.",
        "Figure 5a; 0.05 is our measure",
    ),
    remarks=_grown,
)

FIGURE_5A = Exhibit(
    name="rank2026/figure_5a",
    title="Figure 5a: rank against the head dimension for four widths",
    caption="As Figure 1 (100 tokens, batch 32, N(0, 1) weights and inputs, T = √d_h, "
    "ε = 1e-8, float64), for models of four widths. Bands: one standard deviation of single "
    "matrices. Thin line: the finite law of hardmax.",
    questions=SWEEP.questions,
    present=SWEEP.present,
    printed="Figure 5a",
)
