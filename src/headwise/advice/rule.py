"""THE RULE: which rank is advised, from what was measured. Everything to be judged is here.

1. **Which curve.** The numerical rank of the first layer at the model's own start (LayerNorm,
   PyTorch's default weights). On CIFAR-10 (ViT, 8 heads, 12,000 images, two seeds) it saturated
   where accuracy did, at 8 of 1 … 32; the same rank with N(0, 1) weights on bare tokens, the
   paper's, levelled off at 2. Without data the finite law is all there is.
2. **When it is saturated.** At the smallest rank whose lower confidence limit is within
   ``SLACK`` of the plateau. On that evidence every slack from 0.05 to 0.22 gives 8; 0.1 lies
   in the middle. That rank is advised. Between two ranks that were looked at the curve is
   read as a straight line, and a rank there that is within ``SLACK`` meets the need too.
3. **Retrieval.** To look single tokens up exactly, a head needs to resolve their effective
   dimension (heads paper), and the directions beyond it count too: with effective dimension 4, 8
   and 16 planted in width 32, a rank equal to it reached 80 to 94 % of what full rank does, twice
   it 97 to 100 %. So the need is ``MARGIN`` times the effective dimension, at most as many
   directions as tokens have: the width's, or the numbers of a narrower vector.
   Vectors that come with the data have a dimension that no training changes, so the larger of the
   two needs counts. Tokens with ids get a learned embedding, which can lay them out in as few
   dimensions as the task wants, so there mixing alone counts.
4. **Heads.** As many of that rank as fill the width, or as a budget of parameters buys
   (``heads.most_heads``). At equal parameters many heads of the advised rank scored higher
   than few of a larger one on CIFAR-10 and digits, and where tokens are looked up one head of the
   advised rank, the full one, beat many of less.

Evidence, not proof: ``benchmarks/advice`` judges the rule, also on tasks it was not made from. A
person who knows the task overrules 3. by naming the need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from headwise.advice.curves import RankCurve
from headwise.advice.question import Need
from headwise.advice.saturation import our_saturation, paper_saturation, saturated_from

Bound = Literal["mixing", "retrieval"]

#: How many times the effective dimension lookup takes.
MARGIN = 2

#: How far below its plateau, as a share of it, a saturated curve may be.
SLACK = 0.1


@dataclass(frozen=True)
class RankChoice:
    """The rank that is advised, and the needs it was chosen from.

    ``mixing`` is where the judged curve saturates, ``reached`` whether it does so at all below
    the largest rank looked at; ``retrieval`` is ``MARGIN`` times the effective dimension, at
    most all directions; ``paper`` is the rank paper's rule on its own curve, for comparison;
    ``fixed`` whether the rank was given instead. ``mixing_from`` is the least rank that mixes
    enough, ``mixing`` being the first of those looked at; ``counts`` are the needs to be met.
    """

    rank: int
    mixing: int
    reached: bool
    retrieval: int
    paper: int | None
    need: Need
    binds: Bound
    mixing_from: int
    counts: tuple[Bound, ...]
    fixed: bool = False

    @property
    def enough(self) -> int:
        """The least rank that meets every need that counts."""
        least: dict[Bound, int] = {"mixing": self.mixing_from, "retrieval": self.retrieval}
        return max(least[need] for need in self.counts)


def judged_curve(curves: tuple[RankCurve, ...]) -> RankCurve:
    """The curve the rule reads: the model's own start if measured, else the first there is.

    >>> law = RankCurve("law", (1, 2), (0.1, 0.2), (0.0, 0.0), 0, 0.2, "theory")
    >>> judged_curve((law,)).start
    'law'
    """
    return next((curve for curve in curves if curve.start == "model"), curves[0])


def choose_rank(
    curves: tuple[RankCurve, ...],
    effective_dimension: float,
    directions: int,
    learned: bool,
    need: Need,
) -> RankChoice:
    """The advised rank, for tokens that differ in so many directions.

    >>> curve = RankCurve("model", (1, 2, 4), (0.3, 0.7, 1.0), (0.0,) * 3, 8, 1.0, "measured")
    >>> choose_rank((curve,), 2.6, 8, False, "mixing").rank
    4
    >>> choose_rank((curve,), 2.6, 8, False, "data").rank
    6
    >>> choose_rank((curve,), 2.6, 5, False, "data").rank
    5
    """
    curve = judged_curve(curves)
    found = our_saturation(curve, SLACK)
    mixing = curve.head_dims[-1] if found is None else found
    # No rank above the number of directions adds anything.
    retrieval = min(whole_dimension(MARGIN * effective_dimension), directions)
    wanted: dict[Bound, int] = {"mixing": mixing, "retrieval": retrieval}
    counts = _counted(need, learned)
    binds = max(counts, key=lambda name: wanted[name])
    paper = paper_saturation(_papers_curve(curves))
    reached, least = found is not None, saturated_from(curve, SLACK) or mixing
    needs = (mixing, reached, retrieval, paper, need, binds)
    return RankChoice(wanted[binds], *needs, least, counts)


def whole_dimension(dimension: float) -> int:
    """The directions that a dimension counts: 7.02 is a rounding away from 7, and no need for 8.

    >>> whole_dimension(7.02), whole_dimension(7.2), whole_dimension(0.0)
    (7, 8, 1)
    """
    return max(1, math.ceil(dimension - 0.05))


def _papers_curve(curves: tuple[RankCurve, ...]) -> RankCurve:
    return next((curve for curve in curves if curve.start == "paper"), curves[0])


def _counted(need: Need, learned: bool) -> tuple[Bound, ...]:
    if need == "data":
        return ("mixing",) if learned else ("mixing", "retrieval")
    return ("mixing",) if need == "mixing" else ("retrieval",)
