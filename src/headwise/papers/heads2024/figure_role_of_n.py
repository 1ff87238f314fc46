"""The role of N: the paper finds that more points make low rank worse, full rank hardly."""

from __future__ import annotations

from headwise.papers.comparison import OTHER_SIZES
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.heads2024.remarks import (
    epoch_remarks,
    left_out_remark,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.heads2024.schedules import ROLE_OF_N
from headwise.papers.heads2024.trained import (
    grouped,
    protocol_panels,
    protocol_table,
    shown_field,
    two_layers,
)
from headwise.papers.kinds.trained_rows import Place, diverged_remark, seeds_by, trained_cell
from headwise.papers.printed import printed_table
from headwise.runs import Row, Spec

#: Width and copies: the paper's are 64 and 64, H = d²/r heads.
SIZES = {Scale.MINIATURE: (8, 2), Scale.LAPTOP: (16, 4)}


def _questions(scale: Scale) -> list[Spec]:
    width, copies = SIZES.get(scale, (64, 64))
    return two_layers("tokens", ROLE_OF_N[scale], width=width, copies=copies)


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    printed = {} if answers.scale in SIZES else _printed()
    labelled = grouped(rows, "tokens", "N = {}")
    fixed = [row for row in rows if row["protocol"] == "fixed"]
    cells = []
    for label, losses in printed.items():
        own = [row for row in fixed if f"N = {row['tokens']}" == label]
        points = seeds_by(own, "rank", shown_field(own, "fixed"))
        cells += [
            trained_cell(f"{label}, r {r}", points[r], loss)
            for r, loss in losses.items()
            if r in points
        ]
    place = ("rank", "rank r")
    return Presentation(
        panels=tuple(protocol_panels("Two layers, growing N", labelled, place, printed)),
        cells=tuple(cells),
        uncompared=OTHER_SIZES,
        tables=(protocol_table(rows, {"tokens": "N", "rank": "r"}),),
        claims=_claims(rows) if printed else (),
        remarks=(
            *schedule_remarks(answers, "200,000 steps of 256 at rate 0.005 and five"),
            *unlike_remark({"": labelled}),
            *left_out_remark(printed, {k: {r["rank"] for r in v} for k, v in labelled.items()}),
            *epoch_remarks(rows),
            *stuck_remark(rows, "tokens", "rank"),
            *diverged_remark(rows),
        ),
    )


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    """At every rank that all numbers of points have, the error on fresh data rises with N."""
    fresh = [row for row in rows if row["protocol"] == "fresh"]
    sizes = sorted({row["tokens"] for row in fresh})
    by_size = [seeds_by([r for r in fresh if r["tokens"] == n], "rank", "test_loss") for n in sizes]
    shared = sorted(set.intersection(*(set(found) for found in by_size))) if by_size else []
    lowest = [found[shared[0]].mean for found in by_size] if shared else []
    rises = len(lowest) > 1 and lowest == sorted(lowest)
    at = f" (here at rank {shared[0]}, fresh data)" if shared else ""
    return (Claim(f"more points make low rank worse{at}", rises, "talk, role of N"),)


def _printed() -> dict[str, dict[Place, float]]:
    found: dict[str, dict[Place, float]] = {}
    for row in printed_table("heads2024_role_of_n"):
        found.setdefault(f"N = {row['tokens']}", {})[int(row["rank"])] = float(row["loss"])
    return found


FIGURE_ROLE_OF_N = Exhibit(
    name="heads2024/figure_role_of_n",
    title="Error against rank for growing numbers of points",
    caption="Two layers, H = d²/r heads; otherwise as the figure of rank and depth.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in ROLE_OF_N},
    present=_present,
    printed="the figure of the role of N",
    compared_at=(Scale.GPU, Scale.PAPER),
    partial=True,
)
