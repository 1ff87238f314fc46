"""The role of d: the paper finds that what matters is the rank as a share of the width."""

from __future__ import annotations

from headwise.papers.comparison import NOT_ON_RECORD, OTHER_SIZES
from headwise.papers.exhibit import Answers, Exhibit, Presentation, Scale
from headwise.papers.heads2024.remarks import (
    epoch_remarks,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.heads2024.schedules import ROLE_OF_D
from headwise.papers.heads2024.trained import (
    grouped,
    protocol_panels,
    protocol_table,
    two_layers,
)
from headwise.papers.kinds.trained_rows import diverged_remark
from headwise.runs import Spec

#: Tokens and copies: the paper's are 16 and 8.
SIZES = {Scale.MINIATURE: (4, 2), Scale.LAPTOP: (8, 4)}


def _questions(scale: Scale) -> list[Spec]:
    tokens, copies = SIZES.get(scale, (16, 8))
    return two_layers("width", ROLE_OF_D[scale], tokens=tokens, copies=copies)


def _present(answers: Answers) -> Presentation:
    rows = [row | {"share": row["rank"] / row["width"]} for row in answers.rows()]
    labelled = grouped(rows, "width", "d = {}")
    place = ("share", "rank / width")
    return Presentation(
        panels=tuple(protocol_panels("Two layers, growing d", labelled, place)),
        uncompared=OTHER_SIZES if answers.scale in SIZES else NOT_ON_RECORD,
        tables=(protocol_table(rows, {"width": "d", "rank": "r"}),),
        remarks=(
            *schedule_remarks(answers, "200,000 steps of 256 at rate 0.005 and five"),
            *unlike_remark({"": labelled}),
            *_left_out(answers),
            *epoch_remarks(rows),
            *stuck_remark(rows, "width", "rank"),
            *diverged_remark(rows),
        ),
    )


def _left_out(answers: Answers) -> tuple[str, ...]:
    """Name the printed widths that this scale does not train."""
    if answers.scale in SIZES:
        return ()
    missing = sorted(set(ROLE_OF_D[Scale.PAPER]) - {row["width"] for row in answers.rows()})
    return tuple(f"The paper's figure has d = {width} too; not trained here." for width in missing)


FIGURE_ROLE_OF_D = Exhibit(
    name="heads2024/figure_role_of_d",
    title="Error against rank over width, for growing widths",
    caption="Two layers of averaged blocks of d/r heads (the paper: 8 blocks, N = 16); otherwise "
    "as the figure of rank and depth.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in ROLE_OF_D},
    present=_present,
    printed="the figure of the role of d",
    partial=True,
)
