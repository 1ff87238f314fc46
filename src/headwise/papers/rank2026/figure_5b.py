"""Figure 5b: rank against the head dimension for four temperatures."""

from __future__ import annotations

from headwise.papers.exhibit import Answers
from headwise.papers.kinds.rank_sweep import Points, RankSweep, alike_and_level
from headwise.report import Table

#: The whole divisor of the logits: there is no further √d_h.
TEMPERATURES = (1e-5, 1e-3, 1e-1, 1.0)
LABEL = "T = {:g}".format


def _certainty(answers: Answers, _: Points) -> tuple[Table, ...]:
    found = {heat: answers.rows(kind="measure_rank", temperature=heat) for heat in TEMPERATURES}
    undecided = [sum(row["undecided"] for row in rows) for rows in found.values()]
    table = (
        {
            "T": f"{heat:g}",
            "matrices": sum(row["count"] for row in rows),
            "undecided": count,
            "largest root mean square logit": f"{max(row['logit_size'] for row in rows):.2g}",
        }
        for (heat, rows), count in zip(found.items(), undecided, strict=True)
    )
    stressed = frozenset((i, 2) for i, count in enumerate(undecided) if count)
    return (Table.of(table, stressed, title="How sure the counts are"),)


_REMARK = (
    "T is the whole divisor. At T = 1e-5 logits are so large that their rounding reaches 1e-7, "
    "yet rows are so nearly one-hot that it hardly moves a singular value: a count is undecided "
    "only where two logits of a row are nearly tied. The middle of an undecided count is taken."
)

FIGURE_5B = RankSweep(
    varied="temperature",
    values=TEMPERATURES,
    label=LABEL,
    panel="The temperature hardly matters below one",
    claims=alike_and_level(
        LABEL,
        "The temperature hardly matters: at every head dimension all lie within 0.05.",
        alike_at="Figure 5b",
        level_at="B.2 and §3.2",
    ),
    tables=_certainty,
    remarks=lambda answers, points: (_REMARK,),
).exhibit(
    "As Figure 1 (width 384, 100 tokens, batch 32, N(0, 1) weights and inputs, "
    "ε = 1e-8, float64), with the whole divisor of the logits fixed. Bands: one standard "
    "deviation of single matrices. Thin line: the finite law of hardmax, the limit T → 0.",
    printed="Figure 5b",
)
