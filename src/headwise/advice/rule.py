"""THE RULE: which rank the tokens suggest. Everything to be judged is in this file.

1. **Which curve.** The numerical rank of the first layer at the model's default initialisation
   (LayerNorm, PyTorch's default weights). On CIFAR-10 (ViT, 8 heads, 12,000 images, two seeds)
   it saturated where accuracy did, at 8 of 1 … 32; with N(0, 1) weights, the rank paper's, it
   saturated at 2. Without data the finite law is all there is.
2. **Mixing.** The curve is saturated at the smallest rank whose lower confidence limit is within
   ``SLACK`` of the plateau. On that evidence every slack from 0.05 to 0.22 gives 8. Between two
   measured ranks the curve is interpolated, and a rank there that is within ``SLACK`` is enough.
3. **Retrieval.** To retrieve single tokens exactly, a head must resolve their effective dimension
   (heads paper), and directions beyond it count too: with effective dimension 4, 8 and 16 planted
   in width 32, a rank equal to it reached 80 to 94 % of what full rank does, twice it 97 to 100 %.
   So retrieval needs ``MARGIN`` times the effective dimension, at most as many directions as
   tokens have. Vectors have a dimension that training does not change, so the larger of the two
   needs counts. Ids get a learned embedding, which can place them in few dimensions, so there
   mixing alone counts.
4. **Trained tasks.** Where less rank than usual paid on judged tasks of this kind, mixing counts up
   to the rank that paid there: the geometric mean, over tasks, of the largest rank within one
   standard error of the best, rounded up to a power of two as the sweeps trained them. Without
   this limit mixing asked for rank 32 on digits, pixel by pixel, where ranks 1 to 4 scored best.
5. **Regression.** A regression shows small errors, and layers after the first hold more dimensions
   than the tokens: in the middle layers of in-context regression, queries and keys use twice the
   rank suggested by its tokens. So it asks for ``REGRESSION`` times both needs.
6. **Heads.** As many of that rank as fill the width, or as a budget of parameters buys. At equal
   parameters many heads of the advised rank scored higher than few of a larger one on CIFAR-10
   and digits; where tokens are retrieved, one head of full rank beat many of less.

Whether the answer may then leave the usual geometry depends on the task, by the evidence of
judged tasks in ``judged.json``, which ``python -m benchmarks.advice.judge --evidence`` writes from
recorded sweeps. All its geometries have heads × rank = width.
``benchmarks/advice`` judges the rule, also on tasks it was not made from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from headwise.advice.curves import RankCurve, our_saturation, paper_saturation, saturated_from
from headwise.advice.evidence import Evidence
from headwise.advice.judged import FEWEST, JudgedTask, judged_tasks
from headwise.advice.question import Need, Task
from headwise.report.results import short_repr

Bound = Literal["mixing", "retrieval", "trained"]

#: Why the tokens cannot tell which rank is needed.
Shortage = Literal["tokens", "numbers"]

#: Retrieval needs this many times the effective dimension.
MARGIN = 2

#: Regression asks for this many times the rank suggested by its tokens.
REGRESSION = 2

#: How far below its plateau, as a share of it, a saturated curve may be.
SLACK = 0.1


@dataclass(frozen=True)
class RankChoice:
    """The rank suggested by the tokens, and the needs behind it.

    Attributes:
        rank: The rank chosen: the need that decides, rounded to what is allowed, or the fixed one.
        mixing: The first rank looked at that mixes enough.
        reached: Whether the curve saturates at all.
        retrieval: The rank that retrieval needs.
        paper: The rank paper's rule on its own curve, for comparison.
        need: What was asked to decide.
        binds: The need that decides.
        mixing_from: The least rank that mixes enough, interpolated.
        counts: The needs that must be met.
        fixed: Whether the rank was given.
        ceiling: The largest rank that paid on trained tasks, if the tokens suggest more.
        factor: How many times the rank suggested by the tokens is enough for the task.
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
    ceiling: int | None = None
    factor: int = 1

    @property
    def enough(self) -> int:
        """The least rank that meets every need that counts, or that paid on trained tasks."""
        least: dict[Bound, int] = {"mixing": self.mixing_from, "retrieval": self.retrieval}
        asked = self.factor * max(least[need] for need in self.counts)
        return asked if self.ceiling is None else min(asked, self.ceiling)

    @property
    def needed(self) -> int:
        """The rank that the need which decides asks for."""
        if self.ceiling is not None:
            return self.ceiling
        return self.factor * (self.mixing if self.binds == "mixing" else self.retrieval)

    @property
    def retrieval_too(self) -> bool:
        """Whether mixing decides, and yet a rank that mixes enough may be too low for retrieval."""
        counted = self.binds == "mixing" and "retrieval" in self.counts
        return counted and self.retrieval > self.mixing_from

    def is_met_by(self, rank: int) -> bool:
        """Whether a head of this rank meets the need; unknown needs are never met."""
        known = self.binds != "mixing" or self.reached
        return known and rank >= self.enough

    def limited(self, ceiling: int | None) -> RankChoice:
        """The same choice, with no more rank for mixing than paid on trained tasks.

        A given rank stays, and so does what retrieval needs: trained tasks have tokens of few
        dimensions.
        """
        if ceiling is None or self.fixed:
            return self
        retrieval = self.factor * self.retrieval
        most = max(ceiling, retrieval) if "retrieval" in self.counts else ceiling
        if self.rank <= most:
            return self
        return replace(self, rank=most, binds="trained", ceiling=most)


def choose_rank(evidence: Evidence, need: Need = "data", task: Task = "unknown") -> RankChoice:
    """The rank that the evidence asks for."""
    curve = evidence.curve
    found = our_saturation(curve, SLACK)
    mixing = curve.head_dims[-1] if found is None else found
    # A rank above the number of directions adds nothing.
    retrieval = min(whole_dimension(MARGIN * evidence.effective_dimension), evidence.directions)
    wanted: dict[Bound, int] = {"mixing": mixing, "retrieval": retrieval}
    counts = _counted(need, evidence.learned)
    binds = max(counts, key=lambda name: wanted[name])
    doubled = task == "regress" and need == "data" and REGRESSION * wanted[binds] <= evidence.width
    factor = REGRESSION if doubled else 1
    return RankChoice(
        rank=factor * wanted[binds],
        mixing=mixing,
        reached=found is not None,
        retrieval=retrieval,
        paper=paper_saturation(_papers_curve(evidence.curves)),
        need=need,
        binds=binds,
        mixing_from=saturated_from(curve, SLACK) or mixing,
        counts=counts,
        factor=factor,
    )


def whole_dimension(dimension: float) -> int:
    """A dimension as a whole number: 7.02 is 7 up to rounding, 7.2 needs 8.

    >>> whole_dimension(7.02), whole_dimension(7.2), whole_dimension(0.0)
    (7, 8, 1)
    """
    return max(1, math.ceil(dimension - 0.05))


def _papers_curve(curves: tuple[RankCurve, ...]) -> RankCurve:
    return next((curve for curve in curves if curve.start == "paper"), curves[0])


def _counted(need: Need, learned: bool) -> tuple[Bound, ...]:
    if need == "data":
        return ("mixing",) if learned else ("mixing", "retrieval")
    return (need,)


def shortage(evidence: Evidence, rank: int, *, of_model: bool) -> Shortage | None:
    """Why the tokens cannot tell whether this rank is needed; None if they can.

    Fewer tokens than the rank span fewer directions than it has. Vectors with fewer numbers than a
    model's width are not what its layers see. Without a model, and for patches of images, a linear
    embedding is part of the question.
    """
    if evidence.statistics is None:
        return None
    if evidence.count < rank:
        return "tokens"
    narrow = evidence.directions < evidence.width and not evidence.images
    return "numbers" if of_model and narrow else None


#: Evidence for less rank reaches this many times the largest rank that its tasks were advised.
REACH = 2


@dataclass(frozen=True)
class Support:
    """What the judged tasks of a kind say about leaving the usual geometry.

    Attributes:
        kind: Kind of the task.
        tokens: "ids", "vectors" or "none".
        tasks: The judged tasks of that kind on such tokens.
        enough: Whether the kind has at least two judged tasks on such tokens, and a held-out one.
        smaller: Whether ranks below the usual one did no harm there.
        larger: Whether less rank than the tokens suggest did harm there.
        ceiling: The largest rank that paid on them; None without evidence for less rank than usual.
    """

    kind: Task
    tokens: str
    tasks: tuple[JudgedTask, ...]
    enough: bool
    smaller: bool
    larger: bool
    ceiling: int | None = None

    __repr__ = short_repr

    def allows(self, rank: int, usual: int) -> bool:
        """Whether there is evidence for this rank instead of the usual one."""
        if rank < usual:
            return self.smaller and rank <= self.reach
        return rank == usual or self.larger

    @property
    def reach(self) -> int:
        """The largest rank below the usual one that these tasks say something about."""
        return REACH * max((task.by_rank[1] for task in self.tasks), default=0)


def support_for(kind: Task, tokens: str, judged: Sequence[JudgedTask] | None = None) -> Support:
    """The evidence for a kind of task on such tokens, from all judged tasks or those given.

    A kind counts from two judged tasks on such tokens on, if one task of the kind is held out. The
    gains of less rank than usual, each in its own standard errors, must then add up to more than
    twice the error of their sum. Only more rank for retrieval needs no held-out task: it is proved
    that heads of too low a rank err there.

    For a task of unknown kind on vectors all judged tasks on vectors count, and less rank must have
    paid on each kind of them. For unknown ids, and without tokens, no judged task counts.

    >>> support_for("classify", "vectors").smaller, support_for("next-token", "ids").smaller
    (True, False)
    """
    if tokens == "none" or (kind == "unknown" and tokens == "ids"):
        return Support(kind, tokens, (), enough=False, smaller=False, larger=False)
    known = judged_tasks() if judged is None else judged
    of_kind = [task for task in known if kind in (task.kind, "unknown")]
    found = tuple(task for task in of_kind if task.tokens == tokens)
    enough = len(found) >= FEWEST and any(task.held_out for task in of_kind)
    less = enough and all(_is_better(tasks) for tasks in _by_kind(found))
    harmed = bool(found) and fmean(task.half_cost for task in found) > 0
    return Support(
        kind,
        tokens,
        found,
        enough=enough,
        smaller=less,
        larger=(enough or kind == "retrieve") and harmed,
        ceiling=_ceiling(found) if less else None,
    )


def _ceiling(tasks: Sequence[JudgedTask]) -> int:
    """The rank above which such tasks gain nothing: a mean, as a maximum grows with every task."""
    return 2 ** math.ceil(fmean(math.log2(task.most) for task in tasks))


def _by_kind(tasks: Sequence[JudgedTask]) -> list[list[JudgedTask]]:
    """The tasks, kind by kind: one kind with a large gain must not outvote the others."""
    kinds = dict.fromkeys(task.kind for task in tasks)
    return [[task for task in tasks if task.kind == kind] for kind in kinds]


def _is_better(tasks: Sequence[JudgedTask]) -> bool:
    """Whether the gains of less rank than usual are above twice their error, tasks together.

    Points and nats do not add up, so gains count in standard errors (Stouffer's method).
    """
    smaller = [task for task in tasks if task.by_rank[1] < task.usual[1]]
    gains = [task.gain / task.gain_error for task in smaller if task.gain_error > 0]
    return bool(gains) and sum(gains) > 2 * math.sqrt(len(gains))
