"""From evidence and question to ranked geometries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwise.advice.advice import Advice
from headwise.advice.answer import Choice
from headwise.advice.evidence import Evidence
from headwise.advice.findings import findings
from headwise.advice.geometries.candidates import (
    Aim,
    Candidate,
    aim,
    candidates,
    lookup,
    once_each,
    references,
    usual_within,
)
from headwise.advice.geometries.heads import (
    Costs,
    content_rank,
    is_exact,
    lookup_error,
    usual_heads,
)
from headwise.advice.judged import JudgedTask
from headwise.advice.question import Question, kind_of
from headwise.advice.rule import (
    SLACK,
    RankChoice,
    Support,
    choose_rank,
    shortage,
    support_for,
)
from headwise.geometry import HeadGeometry
from headwise.hugging_face.config import ModelConfig
from headwise.hugging_face.sizes import KnownSizes


def decide(
    evidence: Evidence,
    question: Question,
    config: ModelConfig | None = None,
    *,
    do_no_harm: bool = True,
    judged: Sequence[JudgedTask] | None = None,
) -> Advice:
    """Rank the geometries that evidence, budget and constraints leave.

    For a model that exists (``config``), judge what it has and offer nothing that costs more.
    With ``do_no_harm``, the usual geometry (that of the model, if one is given) leads unless
    judged tasks of this kind support another and the tokens can tell. ``judged`` replaces the
    stored ones.
    """
    present = None if config is None else config.geometry
    if present is not None:
        question = question.for_present(present)
    support = support_for(question.task, _tokens(evidence), judged)
    rank = _chosen_rank(evidence, question, support.ceiling if do_no_harm else None)
    fewer = question.constraints.heads or usual_heads(evidence.width)
    aimed = aim(evidence.width, rank, question, fewer if present is None else present.heads)
    if present is None:
        aimed = replace(aimed, fewer=min(aimed.heads, aimed.fewer))
    rank = replace(rank, rank=aimed.rank)
    offered = _offered(evidence.width, rank, question, aimed)
    judge = _Judge(evidence, rank, offered, present, aimed.fewer)
    choices = judge.ranked(offered)
    if present is not None:
        choices = _with_present(choices, judge.references[0], question)
    leader = judge.usual(question) if do_no_harm else None
    short, kept = None, False
    if leader is not None:
        of_model = present is not None
        short = shortage(evidence, max(leader.rank, choices[0].rank), of_model=of_model)
        kept = _is_kept(leader, choices[0], support, question, short=short is not None)
    if leader is not None and kept:
        others = [choice for choice in choices if choice.geometry != leader.geometry]
        choices = [leader, *others]
    answer = Advice(
        evidence=evidence,
        question=question,
        rank=rank,
        choices=tuple(choices),
        references=judge.references,
        support=support,
        kept=kept,
        shortage=short,
        **_of_model(evidence, config),
    )
    return replace(answer, findings=findings(answer, config))


def _of_model(evidence: Evidence, config: ModelConfig | None) -> dict[str, Any]:
    """What an export needs besides the geometry."""
    if config is None:
        return {"sizes": KnownSizes(None, None, evidence.vocabulary, evidence.context)}
    sizes = config.sizes
    if sizes.vocabulary is None:
        sizes = replace(sizes, vocabulary=evidence.vocabulary)
    known = {"carried": config.carried, "family": config.family, "layer": config.layer}
    return {"sizes": sizes} | known


def _tokens(evidence: Evidence) -> str:
    if evidence.statistics is None:
        return "none"
    return "ids" if evidence.learned else "vectors"


def _is_kept(
    leader: Choice, first: Choice, support: Support, question: Question, *, short: bool
) -> bool:
    """Whether the usual geometry leads for lack of evidence that another is better.

    Tokens that cannot tell (``short``) are no evidence. A rank or a need that was asked for is not
    overruled.
    """
    if question.need != "data" or question.constraints.rank is not None:
        return False
    if leader.geometry == first.geometry:
        return False
    if short:
        return True
    if first.rank == leader.rank:
        return not support.enough
    return not support.allows(first.rank, leader.rank)


def _chosen_rank(evidence: Evidence, question: Question, ceiling: int | None) -> RankChoice:
    constraints = question.constraints
    constraints.refuse_beyond(evidence.width)
    found = choose_rank(evidence, question.need, question.task)
    if constraints.rank is not None:
        return replace(found, rank=constraints.rank, fixed=True)
    found = found.limited(ceiling if question.need == "data" else None)
    return replace(found, rank=constraints.rounded(found.rank, evidence.width))


def _offered(width: int, rank: RankChoice, question: Question, aimed: Aim) -> list[Candidate]:
    """Shapes of the advised rank, and heads for lookup where that needs more rank."""
    constraints, budget = question.constraints, question.budget
    found = candidates(width, aimed, constraints, budget, fill=not question.any_shape)
    if rank.retrieval > rank.rank and constraints.rank is None:
        looking = lookup(width, rank.retrieval, constraints)
        # Where ranks have a step, the largest up to the width can be too low to retrieve exactly.
        enough = content_rank(looking.geometry) >= rank.retrieval
        found += [looking] if enough and budget.allows(looking.geometry) else []
    return once_each(found)


class _Judge:
    """Judges candidates by one rank, beside the usual geometry, the largest and the present one."""

    def __init__(
        self,
        evidence: Evidence,
        rank: RankChoice,
        offered: Sequence[Candidate],
        present: HeadGeometry | None,
        usual: int,
    ) -> None:
        self.evidence, self.rank = evidence, rank
        shown = [] if present is None else [Candidate("present", present)]
        both = [*offered, *shown]
        named = max(max(content_rank(c.geometry), c.geometry.v_rank) for c in both)
        largest = max(named, evidence.curve.head_dims[-1])
        most_parameters = max(c.geometry.parameters for c in both)
        beside = [*shown, *references(evidence.width, usual, largest, most_parameters)]
        self.costs = {c.role: Costs.of(c.geometry, evidence.context) for c in beside}
        self.known = {c.geometry for c in shown}
        self.references = tuple(self.judged(candidate) for candidate in beside)

    def ranked(self, offered: Sequence[Candidate]) -> list[Choice]:
        """What is offered, in its order; the present geometry is judged apart."""
        choices = [self.judged(c) for c in offered if c.geometry not in self.known]
        choices.sort(key=_order_by_floor if self.rank.binds == "retrieval" else _order)
        return _led_by_lookup(choices)

    def usual(self, question: Question) -> Choice | None:
        """What leads without evidence: the present model's geometry, or the usual one.

        The usual one also for a model whose own heads, form or costs the question excludes.
        """
        constraints, budget = question.constraints, question.budget
        present = budget.present
        if present is not None:
            own = self.references[0]
            kept = constraints.keeps(present.heads, own.rank)
            if kept and constraints.kind == kind_of(present) and budget.allows(present):
                return own
        found = usual_within(self.evidence.width, constraints, budget)
        return None if found is None else self.judged(found)

    def judged(self, candidate: Candidate) -> Choice:
        """One candidate with its costs and what its heads can do."""
        geometry = candidate.geometry
        costs, r = Costs.of(geometry, self.evidence.context), content_rank(geometry)
        dimension, beside = self.evidence.effective_dimension, self.costs
        return Choice(
            role=candidate.role,
            geometry=geometry,
            costs=costs,
            against_usual=costs.against(beside["usual"]),
            against_largest=costs.against(beside["largest"]),
            against_present=costs.against(beside["present"]) if "present" in beside else None,
            plateau_share=self.evidence.curve.share(r),
            floor=lookup_error(dimension, r, geometry.heads),
            exact=is_exact(dimension, r),
            meets=self.rank.is_met_by(r),
        )


def _with_present(choices: list[Choice], own: Choice, question: Question) -> list[Choice]:
    """The present geometry first, if it is allowed and nothing of equal cost is better."""
    constraints = question.constraints
    kept = constraints.keeps(own.geometry.heads, own.rank)
    allowed = question.budget.allows(own.geometry) and kept
    allowed = allowed and constraints.kind == kind_of(own.geometry)
    if not choices or (allowed and not any(choice.serves_better_than(own) for choice in choices)):
        return [own, *choices]
    return choices


def _order(choice: Choice) -> tuple[bool, int, int, int]:
    """What meets the need first, then larger ranks; the advised shape, the cheapest, lookup."""
    place = {"advised": 0, "lookup": 2}.get(choice.role, 1)
    return not choice.meets, 0 if choice.meets else -choice.rank, place, choice.costs.parameters


def _order_by_floor(choice: Choice) -> tuple[bool, float, int, int, int]:
    """The same where retrieval decides: what does not meet it comes by its least error."""
    unmet, rank, place, cost = _order(choice)
    return unmet, choice.floor if unmet else 0.0, rank, place, cost


def _led_by_lookup(choices: list[Choice]) -> list[Choice]:
    """Where nothing meets the need, prefer what mixes nearly as well and looks up much better.

    A tenth of the plateau is what the rule takes for no difference in mixing.
    """
    if not choices or choices[0].meets:
        return choices
    share, floor = choices[0].plateau_share - SLACK, (1 - SLACK) * choices[0].floor
    better = [c for c in choices if c.plateau_share >= share and c.floor < floor]
    if not better:
        return choices
    first = min(better, key=lambda choice: (choice.floor, *_order(choice)))
    return [first, *(choice for choice in choices if choice is not first)]
