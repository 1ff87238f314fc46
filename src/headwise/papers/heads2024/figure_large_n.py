"""Growing N at fixed low rank: does any fixed low-rank transformer work for all N?"""

from __future__ import annotations

from headwise.papers.exhibit import Claim, Scale, matching
from headwise.papers.heads2024.schedules import LARGE_N, two_layers
from headwise.papers.kinds.trained_grid import TrainedGrid
from headwise.papers.kinds.trained_rows import Coordinate, seeds_by
from headwise.runs import Row

SIZES = {
    Scale.MINIATURE: {"width": 8, "copies": 2},
    Scale.LAPTOP: {"width": 16, "copies": 4},
    Scale.PAPER: {"width": 16, "copies": 16},
}


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    """Judge the rows; runs in miniature are too short to judge."""
    if scale is Scale.MINIATURE:
        return ()
    errors = _lowest_rank(rows)
    trivial = {row["tokens"]: row["trivial"] for row in rows}
    shares = [error / trivial[tokens] for tokens, error in errors.items()]
    return (
        Claim(
            "the error of the lowest rank rises with N",
            _rises(list(errors.values())),
            "the authors' talk, on the role of N",
        ),
        Claim("as a share of the trivial error, which depends on N, it does", _rises(shares)),
    )


def _lowest_rank(rows: list[Row]) -> dict[Coordinate, float]:
    lowest = min(row["rank"] for row in rows)
    own = matching(rows, rank=lowest, protocol="fresh")
    return {tokens: point.mean for tokens, point in seeds_by(own, "tokens", "test_loss").items()}


def _rises(values: list[float]) -> bool:
    return values == sorted(values)


_CONJECTURE = (
    "The paper conjectures that no transformer of fixed low rank works for all N, and has no "
    "figure of it. A rising curve at low rank beside a flat one at full rank is what it expects; "
    "finite training cannot prove it."
)

FIGURE_LARGE_N = TrainedGrid(
    questions=two_layers("tokens", LARGE_N, SIZES),
    scales=tuple(LARGE_N),
    curve="rank",
    label="r = {}".format,
    panel="Two layers, fixed rank",
    along=("tokens", "points N"),
    schedule="100,000 steps of 256 and five",
    columns={"rank": "r", "tokens": "N"},
    claims=_claims,
    remarks=lambda rows, scale: (_CONJECTURE,),
).exhibit(
    "Farthest neighbour of N points, d = 16, two layers of H = d²/r heads of fixed rank r; bands "
    "and dotted lines as in the figure of rank and depth.",
)
