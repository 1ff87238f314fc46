"""Which geometries enter a trial."""

from __future__ import annotations

from collections.abc import Sequence

from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry

#: The head dimension that people use unless they think about it.
USUAL_HEAD_DIM = 64


def usual(width: int) -> HeadGeometry:
    """The usual geometry: heads of dimension 64, or one head if the width is smaller.

    >>> usual(256).heads, usual(48).heads
    (4, 1)
    """
    rank = USUAL_HEAD_DIM if width % USUAL_HEAD_DIM == 0 else width
    return HeadGeometry.free(width, width // rank, rank)


def splits(width: int, least: int = 4) -> list[HeadGeometry]:
    """Every split of the width into heads of a power of two, from rank ``least`` up.

    >>> [(g.heads, g.qk_rank) for g in splits(32)]
    [(8, 4), (4, 8), (2, 16), (1, 32)]
    """
    ranks = [2**power for power in range(20) if least <= 2**power <= width]
    found = [HeadGeometry.free(width, width // rank, rank) for rank in ranks if width % rank == 0]
    return found or [usual(width)]


def named(candidates: Sequence[HeadGeometry]) -> dict[str, HeadGeometry]:
    """Candidates by name, such as "4 x 16" or "4 x 8/16" where the value rank differs.

    >>> list(named(splits(8)))
    ['2 x 4', '1 x 8']
    """
    found = {name_of(geometry): geometry for geometry in candidates}
    if len(found) < 2:
        raise BadInputError(
            f"expected at least two different candidates, got {len(found)}",
            hint="pass more geometries, or leave them out to try every split of the width",
        )
    return found


def name_of(geometry: HeadGeometry) -> str:
    """A geometry in a few letters."""
    rank = f"{geometry.qk_rank}"
    if geometry.v_rank != geometry.qk_rank:
        rank += f"/{geometry.v_rank}"
    groups = f" ({geometry.kv_heads} kv)" if geometry.kv_heads != geometry.heads else ""
    return f"{geometry.heads} x {rank}{groups}"
