"""Which geometries enter a trial."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from headwise.advice import Advice, advise
from headwise.data.text import windows
from headwise.errors import ParameterError
from headwise.geometry import HeadGeometry, usual
from headwise.progress import SILENT, Progress
from headwise.trials.problems import Problem

#: The most sequences that ``advise`` reads.
MOST_READ = 256


def splits(width: int, least: int = 4) -> list[HeadGeometry]:
    """Return every split of the width into heads of a power of two.

    Args:
        width: The width of the model.
        least: The smallest rank.

    Returns:
        The geometries, from the smallest rank up.

    Example:
        >>> [(g.heads, g.qk_rank) for g in splits(32)]
        [(8, 4), (4, 8), (2, 16), (1, 32)]
    """
    ranks = [2**power for power in range(20) if least <= 2**power <= width]
    found = [HeadGeometry.free(width, width // rank, rank) for rank in ranks if width % rank == 0]
    return found or [usual(width)]


def advice_for(problem: Problem, width: int, progress: Progress = SILENT) -> Advice:
    """What ``advise`` says about the data of a trial."""
    return advise(
        problem.inputs[:MOST_READ] if problem.inputs.dim() > 1 else _rows(problem),
        width=width,
        task=problem.advised_task,
        patch=problem.patch or None,
        mask="causal" if problem.kind == "next-token" else None,
        progress=progress,
    )


def advised(
    problem: Problem, width: int, progress: Progress
) -> tuple[list[HeadGeometry], HeadGeometry]:
    """Ask ``advise`` for its choices and the usual one, and which of them it would take."""
    # A geometry that costs more than the usual one is left out: at more cost anything may win.
    answer = advice_for(problem, width, progress)
    most = usual(width)
    chosen = [choice.geometry for choice in answer.choices]
    ranks = sorted({answer.best.geometry.qk_rank, most.qk_rank})
    middle = 2 ** round(math.log2(ranks[0] * ranks[-1]) / 2)
    if width % middle == 0:
        chosen.append(HeadGeometry.free(width, width // middle, middle))
    plain = [g for g in chosen if isinstance(g, HeadGeometry) and g.kv_heads == g.heads]
    found = [*(g for g in plain if g.parameters <= most.parameters), most]
    several = list(dict.fromkeys(found)) if len(set(found)) > 1 else [*splits(width), most]
    return several, answer.best.geometry


def _rows(problem: Problem) -> Tensor:
    """Windows of a text, as ``advise`` takes them."""
    return windows(problem.inputs, min(problem.length, len(problem.inputs)), most=MOST_READ)


def named(candidates: Sequence[HeadGeometry]) -> dict[str, HeadGeometry]:
    """Name candidates, such as "4 x 16", or "4 x 8/16" if the value rank differs.

    Returns:
        Candidates by name.

    Raises:
        ParameterError: If there are fewer than two different candidates.
    """
    found = {name_of(geometry): geometry for geometry in candidates}
    if len(found) < 2:
        raise ParameterError(
            f"expected at least two different candidates, got {len(found)}",
            hint="pass more geometries, or leave `candidates` out to take those of the advice",
        )
    return found


def name_of(geometry: HeadGeometry) -> str:
    """A geometry in a few letters."""
    rank = f"{geometry.qk_rank}"
    if geometry.v_rank != geometry.qk_rank:
        rank += f"/{geometry.v_rank}"
    groups = f" ({geometry.kv_heads} kv)" if geometry.kv_heads != geometry.heads else ""
    return f"{geometry.heads} x {rank}{groups}"
