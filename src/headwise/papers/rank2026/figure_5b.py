"""Figure 5b: rank against the head dimension for four temperatures."""

from __future__ import annotations

from headwise.papers.exhibit import Answers, Exhibit
from headwise.papers.kinds.rank_sweep import RankSweep
from headwise.report import Table

#: The whole divisor of the logits: there is no further √d_h.
TEMPERATURES = (1e-5, 1e-3, 1e-1, 1.0)


def _certainty(answers: Answers) -> tuple[Table, ...]:
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
    stressed = frozenset((i, 2) for i, row in enumerate(rows) if row[2])
    columns = ("T", "matrices", "undecided", "largest root mean square logit")
    return (Table(columns, tuple(rows), stressed, title="How sure the counts are"),)


_REMARK = (
    "T is the whole divisor. At T = 1e-5 logits are so large that their rounding reaches 1e-7, "
    "yet rows are so nearly one-hot that it hardly moves a singular value: a count is undecided "
    "only where two logits of a row are nearly tied. The middle of an undecided count is taken."
)

SWEEP = RankSweep(
    field="temperature",
    values={heat: f"T = {heat:g}" for heat in TEMPERATURES},
    panel="The temperature hardly matters below one",
    place="Figure 5b",
    alike=(
        "The temperature hardly matters: at every head dimension all lie within 0.05.",
        "Figure 5b; 0.05 is our measure",
    ),
    tables=_certainty,
    remarks=lambda *_: _REMARK,
)

FIGURE_5B = Exhibit(
    name="rank2026/figure_5b",
    title="Figure 5b: rank against the head dimension for four temperatures",
    caption="As Figure 1 (width 384, 100 tokens, batch 32, N(0, 1) weights and inputs, "
    "ε = 1e-8, float64), with the whole divisor of the logits fixed. Bands: one standard "
    "deviation of single matrices. Thin line: the finite law of hardmax, the limit T → 0.",
    questions=SWEEP.questions,
    present=SWEEP.present,
    printed="Figure 5b",
)
