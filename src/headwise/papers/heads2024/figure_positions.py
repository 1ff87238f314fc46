"""Positions: the paper finds that they help low-rank heads, most in separate dimensions."""

from __future__ import annotations

from collections.abc import Callable

from headwise.experiments.training_cost import cheap_first
from headwise.papers.comparison import OTHER_SIZES, SHARE, Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.heads2024.remarks import (
    epoch_remarks,
    left_out_remark,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.heads2024.schedules import POSITIONS
from headwise.papers.heads2024.trained import (
    depth_words,
    grouped,
    protocol_panels,
    protocol_table,
    scheduled,
    shown_field,
)
from headwise.papers.kinds.trained_rows import Place, diverged_remark, seeds_by, trained_cell
from headwise.papers.printed import printed_table
from headwise.runs import Row, Spec

Printed = dict[tuple[str, int], dict[Place, float]]


#: Width, tokens and copies where they are not the paper's.
SIZES = {
    Scale.MINIATURE: {"width": 8, "tokens": 4, "copies": 2},
    Scale.LAPTOP: {"width": 16, "tokens": 8, "copies": 4},
}


def _questions(scale: Scale) -> list[Spec]:
    sizes = SIZES.get(scale, {"copies": 8})
    return cheap_first(
        spec
        for (positions, layers), schedule in POSITIONS[scale].items()
        for spec in scheduled(
            schedule, positions=positions, layers=layers, learning_rate=0.005, **sizes
        )
    )


def _present(answers: Answers) -> Presentation:
    rows = answers.rows()
    printed = {} if answers.scale in SIZES else _printed()
    by_depth = {
        layers: grouped([r for r in rows if r["layers"] == layers], "positions", "{}")
        for layers in sorted({row["layers"] for row in rows})
    }
    pairs = []
    for layers, labelled in by_depth.items():
        beside = {label: printed.get((label, layers), {}) for label in labelled}
        title = depth_words(layers)
        pairs.append(tuple(protocol_panels(title, labelled, ("rank", "rank r"), beside)))
    fields = {"positions": "positions", "layers": "layers", "rank": "r"}
    return Presentation(
        panels=tuple(panel for pair in pairs for panel in pair),
        cells=_cells(rows, printed),
        uncompared=OTHER_SIZES,
        tables=(protocol_table(rows, fields),),
        claims=_claims(rows) if printed else (),
        remarks=(
            *schedule_remarks(answers, "200,000 steps of 256 and five"),
            *unlike_remark({depth_words(n): own for n, own in by_depth.items()}),
            *_left_out(rows, printed),
            *epoch_remarks(rows),
            *stuck_remark(rows, "layers", "positions", "rank"),
            *diverged_remark(rows),
        ),
    )


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    """Judge the talk's claims; positions help if they lower the error by at least a fifth."""
    added, one, deep = (
        _ratios(rows, "additive", lambda depth: True),
        _ratios(rows, "concatenated", lambda depth: depth == 1),
        _ratios(rows, "concatenated", lambda depth: depth > 1),
    )
    place = "talk, modifying attention; a fifth is our measure"
    return (
        Claim("added positions do not help below full rank", _none_helps(added), place),
        Claim("appended positions do not help one layer of low rank", _none_helps(one), place),
        Claim(
            "appended positions help low rank with several layers",
            bool(deep) and all(ratio <= 1 - SHARE for ratio in deep),
            place,
        ),
    )


def _none_helps(ratios: list[float]) -> bool:
    return bool(ratios) and all(ratio > 1 - SHARE for ratio in ratios)


def _ratios(rows: list[Row], positions: str, deep: Callable[[int], bool]) -> list[float]:
    """Return error with positions over error without, on fresh data, by depth and low rank."""
    found = []
    for depth in sorted({row["layers"] for row in rows if deep(row["layers"])}):
        own = [r for r in rows if (r["layers"], r["protocol"]) == (depth, "fresh")]
        low = [row for row in own if row["rank"] < row["width"]]
        with_them, without = (
            seeds_by([r for r in low if r["positions"] == p], "rank", "test_loss")
            for p in (positions, "none")
        )
        found += [with_them[r].mean / without[r].mean for r in with_them if r in without]
    return found


def _left_out(rows: list[Row], printed: Printed) -> tuple[str, ...]:
    wanted = {f"{name}, {depth_words(n)}": losses for (name, n), losses in printed.items()}
    have: dict[str, set[int]] = {}
    for row in rows:
        have.setdefault(f"{row['positions']}, {depth_words(row['layers'])}", set()).add(row["rank"])
    return left_out_remark(wanted, have)


def _printed() -> Printed:
    found: Printed = {}
    for row in printed_table("heads2024_positions"):
        place = (row["positions"], int(row["layers"]))
        found.setdefault(place, {})[int(row["rank"])] = float(row["loss"])
    return found


def _cells(rows: list[Row], printed: Printed) -> tuple[Cell, ...]:
    found = []
    for (positions, layers), losses in printed.items():
        own = [
            row
            for row in rows
            if (row["positions"], row["layers"], row["protocol"]) == (positions, layers, "fixed")
        ]
        points = seeds_by(own, "rank", shown_field(own, "fixed"))
        found += [
            trained_cell(f"{positions}, {depth_words(layers)}, r {r}", points[r], loss)
            for r, loss in losses.items()
            if r in points
        ]
    return tuple(found)


FIGURE_POSITIONS = Exhibit(
    name="heads2024/figure_positions",
    title="Error against rank with learned positions",
    caption="As the figure of rank and depth, H = d^1.5/r heads, with learned positions added to "
    "the tokens or in 64 separate dimensions.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in POSITIONS},
    present=_present,
    printed="the figure of positions",
    compared_at=(Scale.GPU, Scale.PAPER),
    partial=True,
)
