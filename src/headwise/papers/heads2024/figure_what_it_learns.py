"""What full-rank heads learn: by the paper a large negative multiple of the identity."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from headwise.papers.comparison import OTHER_SIZES
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grouped, matching
from headwise.papers.heads2024.figure_rank_depth import questions
from headwise.papers.heads2024.schedules import GENTLE
from headwise.papers.kinds.trained_rows import (
    diverged_remark,
    over_seeds,
    seeds_by,
    survivors,
    trained_curve,
)
from headwise.papers.kinds.training_remarks import schedule_remarks, unlike_remark
from headwise.papers.printed import printed_table
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec

#: Published angle and size of full-rank heads, by their number.
Printed = dict[int, dict[str, float]]

#: The protocols and the words for them.
SHOWN = {"fixed": "fixed set", "fresh": "fresh data"}


def _questions(scale: Scale) -> list[Spec]:
    """Return the one-layer runs of figure_rank_depth, and runs at the paper's rate."""
    fast = [spec for spec in questions(scale) if spec.content["layers"] == 1]
    return [*fast, *questions(scale, GENTLE)]


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    width = max(row["width"] for row in rows)
    full = matching(rows, rank=width)
    printed = {} if answers.scale in (Scale.MINIATURE, Scale.LAPTOP) else _printed()
    return Presentation(
        panels=tuple(
            panel for protocol in SHOWN for panel in _panels(_gentle(rows), protocol, printed)
        ),
        tables=tuple(_table(full, protocol, printed) for protocol in SHOWN),
        claims=_claims(_gentle(full), answers.scale),
        uncompared="published angles are shown; no rule compares them" if printed else OTHER_SIZES,
        remarks=(
            *schedule_remarks(answers, "100,000 steps of 256 and five"),
            "The form of rank r closest to −I is a multiple of −P, P a projection on r dimensions. "
            "Its angle is acos(−√(r/d)), the thin line.",
            *_rate_remark(rows),
            *unlike_remark({"": {_label(c): own for c, own in _by_copies(_gentle(rows)).items()}}),
            "Angles are in degrees and sizes in units of √d, so the rule for losses is not applied "
            "to them; the size grows with the length of training.",
            *diverged_remark(rows),
        ),
    )


def _gentle(rows: list[Row]) -> list[Row]:
    """Return, for each number of heads, the runs at the lowest rate."""
    lowest = {
        copies: min(row["learning_rate"] for row in own) for copies, own in _by_copies(rows).items()
    }
    return [row for row in rows if row["learning_rate"] == lowest[row["copies"]]]


def _rate_remark(rows: list[Row]) -> tuple[str, ...]:
    """Explain which runs are shown if a number of heads was trained at several rates."""
    if len(_gentle(rows)) == len(rows):
        return ()
    return (
        "Where a number of heads was trained at several rates, the panels show the lowest rate and "
        "the tables show all. Steps differ with the rate, so the tables name both.",
    )


def _panels(rows: list[Row], protocol: str, printed: Printed) -> tuple[Panel, Panel]:
    """Return panels of angle and size; published values are those of the fixed set at full rank."""
    own = matching(rows, protocol=protocol)
    beside = printed if protocol == "fixed" else {}
    ranks = tuple(sorted({row["rank"] for row in own}))
    return (
        Panel(
            f"Angle of M to the identity, {SHOWN[protocol]}",
            "rank r",
            "degrees, median over heads",
            _angles(own, beside),
            x_scale="log",
            levels=(("−I", 180.0), ("at random", 90.0)),
            law_label="−c · projection",
            x_ticks=ranks,
        ),
        Panel(
            f"Size of M, {SHOWN[protocol]}",
            "rank r",
            "‖M‖_F / √d",
            _curves(own, "form_size", beside),
            x_scale="log",
            y_scale="log",
            x_ticks=ranks,
        ),
    )


def _claims(full: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """Judge the rows; runs in miniature are too short to judge."""
    if scale is Scale.MINIATURE:
        return ()
    own = matching(survivors(full), protocol="fixed")
    pointing = all(row["angle"] > 160 for row in own)
    return (
        Claim(
            "full-rank heads point at −I: a median angle above 160 degrees",
            pointing,
            "the authors' talk, on what full rank learns; threshold of 160 degrees chosen by us",
        ),
        Claim(
            "full-rank heads are large, so that softmax is near hardmax: ‖M‖_F/√d above 30",
            all(row["form_size"] > 30 for row in own),
            "the authors' talk, on what full rank learns: each entry above 30, which can only mean "
            "the diagonal; ‖M‖_F/√d chosen by us",
        ),
    )


def _printed() -> Printed:
    return {
        int(row["heads"]): {"angle": float(row["angle"]), "form_size": float(row["form_size"])}
        for row in printed_table("heads2024_what_it_learns")
    }


def _by_copies(rows: list[Row]) -> dict[int, list[Row]]:
    return dict(sorted(grouped(rows, "copies").items()))


def projection_angle(rank: int, width: int) -> float:
    """Return the angle between the identity and −c·P, with P a projection on r of d dimensions."""
    return math.degrees(math.acos(-math.sqrt(rank / width)))


def _angles(rows: list[Row], printed: Printed) -> tuple[Curve, ...]:
    """The first curve carries the line of projections: it is the same for all."""
    first, *rest = _curves(rows, "angle", printed)
    width, ranks = rows[0]["width"], sorted({row["rank"] for row in rows})
    line = Line.of({r: projection_angle(r, width) for r in ranks})
    return (replace(first, law=line), *rest)


def _label(copies: int) -> str:
    return f"{copies} × d/r heads"


def _curves(rows: list[Row], field: str, printed: Printed) -> tuple[Curve, ...]:
    width = rows[0]["width"]
    return tuple(
        trained_curve(
            _label(copies),
            seeds_by(own, "rank", field),
            {width: printed[copies][field]} if copies in printed else {},
        )
        for copies, own in _by_copies(rows).items()
    )


def _table(full: list[Row], protocol: str, printed: Printed) -> Table:
    lines = []
    own = grouped(matching(full, protocol=protocol), "copies", "learning_rate", "steps")
    for (copies, rate, steps), rows in sorted(own.items()):
        angle, size, loss = (
            over_seeds(rows, field) for field in ("angle", "form_size", "test_loss")
        )
        beside = printed.get(copies, {}) if protocol == "fixed" else {}
        lines.append(
            {
                "full-rank heads": copies,
                "rate": rate,
                "steps": steps,
                "test loss": loss and round(loss.mean, 3),
                "angle to I": angle and round(angle.mean, 1),
                "published": beside.get("angle"),
                "‖M‖_F / √d": size and round(size.mean),
                "published size": beside.get("form_size"),
            }
        )
    title = f"What full rank learns, {SHOWN[protocol]} (degrees, mean over seeds)"
    return Table.of(lines, title=title)


FIGURE_WHAT_IT_LEARNS = Exhibit(
    caption="M = W_Qᵀ W_K of each head of the one-layer models of the figure of rank and depth, "
    "and of some at the paper's own rate, on the fixed set and on fresh data. The exact solution "
    "is a large multiple of −I. Median over heads; over seeds the mean, standard "
    "deviation (band) and minimum (dotted). Hollow: published.",
    questions={scale: partial(_questions, scale) for scale in Scale},
    present=_present,
    printed="the figure of what full rank learns",
)
