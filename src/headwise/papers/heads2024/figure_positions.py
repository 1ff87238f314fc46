"""Positions: by the paper additive ones do not help, and concatenated ones from two layers on."""

from __future__ import annotations

from collections.abc import Callable

from headwise.experiments.training_cost import cheap_first
from headwise.papers.comparison import SHARE
from headwise.papers.exhibit import Claim, Scale, matching
from headwise.papers.heads2024.schedules import POSITIONS, scheduled
from headwise.papers.kinds.trained_grid import COMPARED, TrainedGrid
from headwise.papers.kinds.trained_rows import seeds_by
from headwise.papers.printed import printed_table
from headwise.runs import Row, Spec

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


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """Judge the talk's claims; positions help if they lower the error by at least a fifth."""
    if scale not in COMPARED:
        return ()
    additive, one, deep = (
        _ratios(rows, "additive", lambda depth: True),
        _ratios(rows, "concatenated", lambda depth: depth == 1),
        _ratios(rows, "concatenated", lambda depth: depth > 1),
    )
    printed = "the authors' talk, on modifying attention; threshold of a fifth chosen by us"
    return (
        Claim("additive positions do not help below full rank", _none_helps(additive), printed),
        Claim(
            "concatenated positions do not help one layer of low rank", _none_helps(one), printed
        ),
        Claim(
            "concatenated positions help low rank with several layers",
            bool(deep) and all(ratio <= 1 - SHARE for ratio in deep),
            printed,
        ),
    )


def _none_helps(ratios: list[float]) -> bool:
    return bool(ratios) and all(ratio > 1 - SHARE for ratio in ratios)


def _ratios(rows: list[Row], positions: str, deep: Callable[[int], bool]) -> list[float]:
    """Return error with positions over error without, on fresh data, by depth and low rank."""
    found = []
    for depth in sorted({row["layers"] for row in rows if deep(row["layers"])}):
        own = matching(rows, layers=depth, protocol="fresh")
        low = [row for row in own if row["rank"] < row["width"]]
        with_them, without = (
            seeds_by(matching(low, positions=name), "rank", "test_loss")
            for name in (positions, "none")
        )
        found += [with_them[r].mean / without[r].mean for r in with_them if r in without]
    return found


def _in_print(rows: list[Row], scale: Scale) -> tuple[str, ...]:
    """Say how far the published losses of one layer bear out the talk's words."""
    if scale not in COMPARED:
        return ()
    without = {
        row["rank"]: float(row["loss"])
        for row in printed_table("heads2024_rank_depth")
        if (row["layers"], row["exponent"]) == ("1", "1.5")
    }
    ratios = [
        float(row["loss"]) / without[row["rank"]]
        for row in printed_table("heads2024_positions")
        if (row["positions"], row["layers"]) == ("concatenated", "1") and row["rank"] != "64"
    ]
    return (
        "The talk says that concatenated positions change nothing for one layer. Its own losses "
        f"below full rank are {1 - max(ratios):.0%} to {1 - min(ratios):.0%} lower with them than "
        "those of the figure of rank and depth, which had half as many steps.",
    )


FIGURE_POSITIONS = TrainedGrid(
    questions=_questions,
    scales=tuple(POSITIONS),
    curve="positions",
    label=str,
    cell="{value}, {panel}",
    printed="heads2024_positions",
    schedule="200,000 steps of 256 and five",
    columns={"positions": "positions", "layers": "layers", "rank": "r"},
    claims=_claims,
    remarks=_in_print,
).exhibit(
    "As the figure of rank and depth, H = d^1.5/r heads, with learned positions: additive (added "
    "to the tokens) or concatenated (in 64 dimensions of their own).",
    printed="the figure of positions",
)
