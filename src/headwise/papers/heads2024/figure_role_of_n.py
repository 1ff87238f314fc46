"""The role of N: the paper finds that more points make low rank worse, full rank hardly."""

from __future__ import annotations

from headwise.papers.exhibit import Claim, Scale, grouped, matching
from headwise.papers.heads2024.schedules import ROLE_OF_N, two_layers
from headwise.papers.kinds.trained_grid import COMPARED, TrainedGrid
from headwise.papers.kinds.trained_rows import seeds_by
from headwise.runs import Row

#: Sizes; the paper has H = d²/r heads.
SIZES = {
    Scale.MINIATURE: {"width": 8, "copies": 2},
    Scale.LAPTOP: {"width": 16, "copies": 4},
    Scale.PAPER: {"width": 64, "copies": 64},
}


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """At every rank that all numbers of points have, the error on fresh data rises with N."""
    if scale not in COMPARED:
        return ()
    fresh = sorted(grouped(matching(rows, protocol="fresh"), "tokens").items())
    by_size = [seeds_by(own, "rank", "test_loss") for _, own in fresh]
    shared = sorted(set.intersection(*(set(found) for found in by_size))) if by_size else []
    lowest = [found[shared[0]].mean for found in by_size] if shared else []
    rises = len(lowest) > 1 and lowest == sorted(lowest)
    at = f" (here at rank {shared[0]}, fresh data)" if shared else ""
    return (
        Claim(f"more points make low rank worse{at}", rises, "the authors' talk, on the role of N"),
    )


FIGURE_ROLE_OF_N = TrainedGrid(
    questions=two_layers("tokens", ROLE_OF_N, SIZES),
    scales=tuple(ROLE_OF_N),
    curve="tokens",
    label="N = {}".format,
    panel="Two layers, growing N",
    cell="N = {value}",
    printed="heads2024_role_of_n",
    schedule="200,000 steps of 256 at rate 0.005 and five",
    columns={"tokens": "N", "rank": "r"},
    claims=_claims,
).exhibit(
    "Two layers, H = d²/r heads; otherwise as the figure of rank and depth.",
    printed="the figure of the role of N",
)
