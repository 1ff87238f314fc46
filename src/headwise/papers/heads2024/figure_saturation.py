"""Two rules on one task: rank at initialisation saturates early, the task needs full rank."""

from __future__ import annotations

from functools import partial

from headwise.experiments.measure_rank import MeasureRank
from headwise.papers.critical import NEEDED_THRESHOLD, critical_of
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, matching
from headwise.papers.heads2024.figure_rank_depth import SIZES, questions
from headwise.papers.kinds.protocols import protocol_panels
from headwise.papers.kinds.rank_rows import Coordinate, Pooled, pooled_by, rank_curve
from headwise.papers.kinds.trained_rows import diverged_remark, seeds_by
from headwise.papers.kinds.training_remarks import schedule_remarks
from headwise.report import Panel
from headwise.runs import Row, Spec

SEEDS = (0, 1, 2, 3)


def _questions(scale: Scale) -> list[Spec]:
    """Return ranks at initialisation, and the one-layer runs of figure_rank_depth."""
    width, tokens = SIZES[scale]
    trained = [
        spec
        for spec in questions(scale)
        if (spec.content["layers"], spec.content["copies"]) == (1, 1)
    ]
    ranks = sorted({spec.content["rank"] for spec in trained})
    fixed = {"width": width, "tokens": tokens, "batch": 64}
    return [*grid(MeasureRank, fixed, head_dim=ranks, seed=SEEDS), *trained]


def _present(answers: Answers) -> Presentation:
    trained = answers.rows(kind="train_neighbours")
    points = pooled_by(answers.rows(kind="measure_rank"), "head_dim")
    tokens, width = trained[0]["tokens"], trained[0]["width"]
    ticks = tuple(points)
    initial = Panel(
        "Rank at initialisation",
        "rank r",
        "rank of attention / N",
        (rank_curve(f"N = {tokens}, d = {width}", points),),
        x_scale="log",
        x_ticks=ticks,
    )
    labelled = {"H = d/r": trained}
    return Presentation(
        panels=(initial, *protocol_panels("One layer, trained", labelled, ("rank", "rank r"))),
        claims=_claims(points, trained, answers.scale),
        remarks=(
            _rule_in_words(points, tokens, width),
            *schedule_remarks(answers, "100,000 steps of 256 and five"),
            *diverged_remark(trained),
        ),
    )


def _rule_in_words(points: dict[Coordinate, Pooled], tokens: int, width: int) -> str:
    chosen = critical_of(points)
    means = [point.mean for point in points.values()]
    told = f"r = {chosen}" if chosen else f"no rank below {max(points)}"
    return (
        f"With N(0, 1) weights and inputs, N = {tokens} and d = {width}, rank over N is "
        f"{min(means):.2f} to {max(means):.2f}; "
        f"the rule of the rank paper (threshold {NEEDED_THRESHOLD}) takes {told}. On the farthest "
        "neighbour of the same size one layer needs r = d. The rule sees how many different rows "
        "attention can have; this task needs to tell which of N points is meant, from all d "
        "coordinates at once. A saturated rank says that more head dimension adds no rank; it "
        "does not say that the task needs no more."
    )


def _claims(points: dict[Coordinate, Pooled], rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    if scale is Scale.MINIATURE:
        return ()
    losses = seeds_by(matching(rows, protocol="fresh"), "rank", "test_loss")
    width, chosen = rows[0]["width"], critical_of(points)
    return (
        Claim(
            "rank at initialisation saturates at half the width or less",
            chosen is not None and 2 * chosen <= width,
        ),
        Claim(
            "at that rank the trained error is at least 3 times that of full rank",
            chosen in losses and losses[chosen].mean >= 3 * losses[width].mean,
        ),
    )


FIGURE_SATURATION = Exhibit(
    caption="First: rank over length of attention at initialisation, as the rank paper measures "
    "it, at the size of the heads paper's task; band: one standard deviation of single matrices. "
    "Then: what one layer of d/r heads of rank r learns of the farthest neighbour.",
    questions={scale: partial(_questions, scale) for scale in Scale},
    present=_present,
)
