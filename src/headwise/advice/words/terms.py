"""Terms that sentences share: geometries, needs, shares and counts in words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from headwise.advice.geometries.heads import content_rank, rotary_rank
from headwise.advice.rule import SLACK, RankChoice
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.report.tables import counted

#: Kinds of tasks as nouns.
KINDS = {
    "classify": "classification",
    "regress": "regression",
    "retrieve": "retrieval",
    "unknown": "",
}

START_LONG = {
    "model": "default initialisation: LayerNorm and PyTorch's default weights",
    "paper": "N(0, 1) weights on the tokens without LayerNorm, as in the rank paper",
    "law": "the law for random heads on orthonormal tokens",
}

TASK_FROM = {
    "given": "as given",
    "config": "from the config",
    "data": "from the data",
    "need": "from `need`",
    "assumed": "not given",
}


def geometry_words(geometry: HeadGeometry) -> str:
    """A geometry in words.

    >>> geometry_words(HeadGeometry(64, 4, 2, 8, 16))
    '4 heads (2 key-value heads) of rank 8, values of rank 16'
    """
    words = counted(geometry.heads, "head")
    if geometry.kv_heads != geometry.heads:
        words += f" ({counted(geometry.kv_heads, 'key-value head')})"
    rank = content_rank(geometry)
    words += f" of rank {rank}"
    if isinstance(geometry, LatentGeometry):
        rotary = rotary_rank(geometry)
        words += f" and {rotary} rotary dimensions over a latent of {geometry.kv_latent}"
    return words if geometry.v_rank == rank else f"{words}, values of rank {geometry.v_rank}"


def enough_words(rank: RankChoice) -> str:
    """The least rank that is enough, marked where it is interpolated between measured ones.

    Every sentence and table takes the number from here, so that they agree.
    """
    interpolated = rank.ceiling is None and rank.enough == rank.mixing_from != rank.mixing
    return f"{'about ' * interpolated}rank {rank.enough}"


def need_words(rank: RankChoice) -> str:
    """What the need that decides asks for, as the end of a sentence."""
    if rank.ceiling is not None:
        return f"trained tasks improved up to rank {rank.enough}"
    if is_open(rank):
        return f"mixing still gains at {rank.mixing}, the largest rank tried"
    enough = enough_words(rank)
    if rank.factor > 1:
        return f"regression needs {enough}"
    if rank.binds == "retrieval" or rank.retrieval_too:
        return f"retrieval of single tokens needs {enough}"
    return f"{1 - SLACK:.0%} mixing needs {enough}"


def kind_words(kind: str, data: Sequence[str] = ()) -> str:
    """Tasks of a kind, by what their tokens are made of if that is one thing.

    >>> kind_words("classify", ["images"]), kind_words("next-token", ["code", "text"])
    ('image-classification tasks', 'next-token tasks')
    """
    noun = KINDS.get(kind, kind)
    if kind == "classify" and list(data) == ["images"]:
        noun = f"image-{noun}"
    return f"{noun} tasks".strip()


def task_words(name: str) -> str:
    """A judged task by its data and width.

    >>> task_words("prose-next-token-w256-n512"), task_words("sorting-w128-n128")
    ('prose, width 256', 'sorting, width 128')
    >>> task_words("digits-patches")
    'digits-patches'
    """
    found = re.fullmatch(r"(\w+?)(?:-[-a-z]+)?-w(\d+)-n\d+", name)
    return name if found is None else f"{found[1]}, width {found[2]}"


def is_open(rank: RankChoice) -> bool:
    """Whether no rank that was tried is known to be enough."""
    return rank.ceiling is None and rank.binds == "mixing" and not rank.reached


def ranks_words(ranks: Sequence[int]) -> str:
    """Ranks in ascending order, as a range.

    >>> ranks_words([4, 8]), ranks_words([8])
    ('rank 4 to 8', 'rank 8')
    """
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"rank {ranks[0]} to {ranks[-1]}"


def percent(share: float) -> str:
    """A share in percent, rounded down, so that 90% means at least that.

    >>> percent(0.8999), percent(0.9), percent(0.29)
    ('89%', '90%', '29%')
    """
    return f"{math.floor(100 * share + 1e-9)}%"
