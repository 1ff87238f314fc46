"""Figure 5a: rank against the head dimension for four model widths."""

from __future__ import annotations

from headwise.papers.exhibit import Answers
from headwise.papers.kinds.rank_rows import widest
from headwise.papers.kinds.rank_sweep import Points, RankSweep, alike_and_level

LABEL = "width {}".format


def _grown(_: Answers, points: Points) -> tuple[str, ...]:
    return (
        "Logits grow with the width (N(0, 1) weights are not scaled), so softmax comes closer "
        "to hardmax and rank falls towards the law. The largest distance between two widths "
        f"at one head dimension is {widest(points.values()):.3f}.",
    )


FIGURE_5A = RankSweep(
    varied="width",
    values=(384, 768, 1152, 1536),
    label=LABEL,
    miniature=(16, 32),
    panel="The width of the model hardly matters",
    claims=alike_and_level(
        LABEL,
        "The width hardly matters: at every head dimension all widths lie within 0.05.",
        alike_at="Figure 5a",
        level_at="B.1 and §3.2",
    ),
    remarks=_grown,
).exhibit(
    "As Figure 1 (100 tokens, batch 32, N(0, 1) weights and inputs, T = √d_h, "
    "ε = 1e-8, float64), for models of four widths. Bands: one standard deviation of single "
    "matrices. Thin line: the finite law of hardmax.",
    printed="Figure 5a",
)
