"""Growing N at fixed low rank: does any fixed low-rank transformer work for all N?"""

from __future__ import annotations

from dataclasses import replace

from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.heads2024.remarks import (
    epoch_remarks,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.heads2024.schedules import LARGE_N
from headwise.papers.heads2024.trained import (
    grouped,
    protocol_panels,
    protocol_table,
    two_layers,
)
from headwise.papers.kinds.trained_rows import Place, diverged_remark, seeds_by
from headwise.report import Curve, Line
from headwise.runs import Row, Spec

#: Width and copies.
SIZES = {Scale.MINIATURE: (8, 2), Scale.LAPTOP: (16, 4)}


def _questions(scale: Scale) -> list[Spec]:
    width, copies = SIZES.get(scale, (16, 16))
    return two_layers("tokens", LARGE_N[scale], width=width, copies=copies)


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    labelled = grouped(rows, "rank", "r = {}")
    panels = protocol_panels("Two layers, fixed rank", labelled, ("tokens", "points N"))
    # The baseline depends on N here: a curve, not a level.
    trivial = {row["tokens"]: row["trivial"] for row in rows}
    line = Line(tuple(sorted(trivial)), tuple(trivial[n] for n in sorted(trivial)))
    shown = tuple(
        replace(panel, curves=(*panel.curves, Curve("trivial", line)), levels=())
        for panel in panels
    )
    return Presentation(
        panels=shown,
        tables=(protocol_table(rows, {"rank": "r", "tokens": "N"}),),
        claims=_claims(answers),
        remarks=(
            "The paper conjectures that no transformer of fixed low rank works for all N, and has "
            "no figure of it. A rising curve at low rank beside a flat one at full rank is what it "
            "expects; finite training cannot prove it.",
            *schedule_remarks(answers, "100,000 steps of 256 and five", printed=False),
            *unlike_remark({"": labelled}),
            *epoch_remarks(rows),
            *stuck_remark(rows, "tokens", "rank"),
            *diverged_remark(rows),
        ),
    )


def _claims(answers: Answers) -> tuple[Claim, ...]:
    """Judge the rows; runs in miniature are too short to judge."""
    if answers.scale is Scale.MINIATURE:
        return ()
    errors = _lowest_rank(answers.rows())
    trivial = {row["tokens"]: row["trivial"] for row in answers.rows()}
    shares = [error / trivial[tokens] for tokens, error in errors.items()]
    return (
        Claim(
            "the error of the lowest rank rises with N",
            _rises(list(errors.values())),
            "talk, role of N",
        ),
        Claim("as a share of the trivial error, which depends on N, it does", _rises(shares)),
    )


def _lowest_rank(rows: list[Row]) -> dict[Place, float]:
    lowest = min(row["rank"] for row in rows)
    own = [row for row in rows if (row["rank"], row["protocol"]) == (lowest, "fresh")]
    return {tokens: point.mean for tokens, point in seeds_by(own, "tokens", "test_loss").items()}


def _rises(values: list[float]) -> bool:
    return values == sorted(values)


FIGURE_LARGE_N = Exhibit(
    name="heads2024/figure_large_n",
    title="Two layers of fixed rank against growing numbers of points",
    caption="Farthest neighbour of N points, d = 16, two layers of H = d²/r heads of fixed rank r; "
    "bands and dotted lines as in the figure of rank and depth.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in LARGE_N},
    present=_present,
)
