"""From evidence to ranked geometries: the rank, the shapes of it, their order and their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwise.advice.candidates import Candidate, candidates, lookup, once_each, references
from headwise.advice.carried import WINDOW
from headwise.advice.config import ModelConfig
from headwise.advice.costs import Costs
from headwise.advice.evidence import Evidence
from headwise.advice.heads import Limit, aimed_heads, limit_of, usual_heads, what_stops_more
from headwise.advice.heads_reason import heads_reason
from headwise.advice.judged_part import part_finding
from headwise.advice.question import (
    Budget,
    Constraints,
    Need,
    checked_need,
    refuse_other_kinds,
)
from headwise.advice.reasons import (
    choice_reasons,
    findings,
    length_finding,
    looked_up,
    verdict,
)
from headwise.advice.result import Advice, Choice, is_met
from headwise.advice.retrieval import is_exact, retrieval_floor
from headwise.advice.rule import SLACK, RankChoice, choose_rank, judged_curve
from headwise.advice.shaping import content_rank
from headwise.advice.sizes import KnownSizes
from headwise.advice.speed import speed_finding
from headwise.advice.window import window_finding
from headwise.geometry import HeadGeometry, LatentGeometry


def decide(evidence: Evidence, budget: Budget, constraints: Constraints, need: Need) -> Advice:
    """Rank the geometries that the evidence, the budget and the constraints leave."""
    refuse_other_kinds(budget, constraints)
    rank = _chosen_rank(evidence, constraints, need)
    heads = aimed_heads(evidence.width, rank.rank, constraints, budget)
    fewer = min(heads, constraints.heads or usual_heads(evidence.width))
    offered = _offered(evidence.width, rank, (heads, fewer), constraints, budget)
    answer = _ranked(evidence, rank, offered, fewer)
    sizes = KnownSizes(None, None, evidence.vocabulary, evidence.context)
    told = (*answer.findings, *_about_heads(answer, constraints, budget))
    return replace(answer, findings=told, sizes=sizes)


def decide_for(
    config: ModelConfig, evidence: Evidence, budget: Budget, constraints: Constraints, need: Need
) -> Advice:
    """The same for a model that exists: what it has is judged, and nothing dearer is offered."""
    refuse_other_kinds(budget, constraints)
    present = config.geometry
    if constraints.kind is None:
        constraints = replace(constraints, kind=_kind(present), group=present.group)
    if isinstance(present, LatentGeometry):
        constraints = replace(constraints, latent=present)
    budget = budget.within(present)
    words = f"{config.family} ({evidence.words})"
    evidence = replace(evidence, words=words)
    rank = _chosen_rank(evidence, constraints, need)
    heads = aimed_heads(evidence.width, rank.rank, constraints, budget)
    offered = _offered(evidence.width, rank, (heads, present.heads), constraints, budget)
    answer = _ranked(evidence, rank, offered, present.heads, [Candidate("present", present)])
    own = answer.references[0]
    kept = constraints.keeps(present.heads, own.rank) and constraints.kind == _kind(present)
    allowed = budget.allows(present) and kept
    # Where nothing else is left, what remained is the present geometry under another name.
    alone = not answer.choices
    if alone or (allowed and not any(_better(choice, own) for choice in answer.choices)):
        answer = replace(answer, choices=(own, *answer.choices))
    sizes = config.sizes
    if sizes.vocabulary is None:
        sizes = replace(sizes, vocabulary=evidence.vocabulary)
    lengths = length_finding(evidence, config.context) if config.context_told else []
    about = [*_about_config(config, evidence), *lengths]
    heads_told = _about_heads(answer, constraints, budget, present)
    found = (verdict(own, answer.best, rank), *about, *answer.findings, *heads_told)
    return replace(answer, findings=found, sizes=sizes, carried=config.carried)


def _about_config(config: ModelConfig, evidence: Evidence) -> list[str]:
    """Which part of it was judged, and what its window means for the numbers."""
    part = config.judged.fields
    window = window_finding(part, config.carried.get(WINDOW), evidence)
    return [*part_finding(config.judged, evidence.mask), *window]


def _about_heads(
    answer: Advice, constraints: Constraints, budget: Budget, present: HeadGeometry | None = None
) -> list[str]:
    """Why there are so many, where nobody fixed them, and what they mean for speed."""
    best = answer.best
    speed = speed_finding(best.geometry, constraints) if best.role != "present" else []
    if constraints.heads is not None:
        return speed
    limit: Limit | None = None
    if best.role == "advised":
        limit = limit_of(best.geometry, constraints, budget, present)
    elif best.role == "lookup":
        limit = "width"
    stopped = what_stops_more(best.geometry, constraints, budget)
    return [heads_reason(best, limit, budget, stopped, present), *speed]


def _kind(geometry: HeadGeometry) -> str:
    if isinstance(geometry, LatentGeometry):
        return "mla"
    return "mha" if geometry.kv_heads == geometry.heads else "gqa"


def _chosen_rank(evidence: Evidence, constraints: Constraints, need: Need) -> RankChoice:
    dimension = evidence.effective_dimension
    checked_need(need)
    constraints.refuse_beyond(evidence.width)
    found = choose_rank(evidence.curves, dimension, evidence.directions, evidence.learned, need)
    if constraints.rank is not None:
        return replace(found, rank=constraints.rank, fixed=True)
    return replace(found, rank=constraints.rounded(found.rank, evidence.width))


def _ranked(
    evidence: Evidence,
    rank: RankChoice,
    offered: list[Candidate],
    usual: int,
    shown: Sequence[Candidate] = (),
) -> Advice:
    """What is offered in its order, beside habit, the largest rank in the usual heads, and more."""
    named = max(
        max(content_rank(c.geometry), c.geometry.v_rank)  # of queries and keys, and of values
        for c in [*offered, *shown]
    )
    largest_rank = max(named, judged_curve(evidence.curves).head_dims[-1])
    dearest = max(c.geometry.parameters for c in [*offered, *shown])
    beside = [*shown, *references(evidence.width, usual, largest_rank, dearest)]
    costs = {c.role: Costs.of(c.geometry, evidence.context) for c in beside}

    def judged(candidate: Candidate) -> Choice:
        return _judged(candidate, evidence, rank, costs)

    known = {c.geometry for c in shown}
    choices = [judged(c) for c in offered if c.geometry not in known]
    choices.sort(key=_order_by_floor if rank.binds == "retrieval" else _order)
    choices = _led_by_lookup(choices)
    return Advice(
        evidence,
        rank,
        tuple(choices),
        tuple(judged(candidate) for candidate in beside),
        findings(evidence, rank),
    )


def _offered(
    width: int,
    rank: RankChoice,
    heads: tuple[int, int],
    constraints: Constraints,
    budget: Budget,
) -> list[Candidate]:
    """The shapes of the advised rank, and heads for lookup where that asks for more.

    ``heads`` are as many as are advised, and the fewer that are offered beside.
    """
    many, fewer = heads
    found = candidates(width, rank.rank, many, constraints, budget, fewer)
    if rank.retrieval > rank.rank and constraints.rank is None:
        looking = lookup(width, rank.retrieval, constraints)
        found += [looking] if budget.allows(looking.geometry) else []
    return once_each(found)


def _order(choice: Choice) -> tuple[bool, int, int, int]:
    """What meets the need first; what does not comes by how far it gets.

    Of those the advised shape first, then the cheapest, lookup at the end.
    """
    place = {"advised": 0, "lookup": 2}.get(choice.role, 1)
    return not choice.meets, 0 if choice.meets else -choice.rank, place, choice.costs.parameters


def _order_by_floor(choice: Choice) -> tuple[bool, float, int, int, int]:
    """The same where lookup decides: what does not meet it comes by the least error possible."""
    unmet, rank, place, cost = _order(choice)
    return unmet, choice.floor if unmet else 0.0, rank, place, cost


def _led_by_lookup(choices: list[Choice]) -> list[Choice]:
    """Where nothing meets the need, rank alone does not decide what comes first.

    What mixes nearly as much, and could look up much better, does: a tenth is what the rule
    takes for no difference in mixing, and a tenth of the error for one in lookup.
    """
    if not choices or choices[0].meets:
        return choices
    share, floor = choices[0].plateau_share - SLACK, (1 - SLACK) * choices[0].floor
    better = [c for c in choices if c.plateau_share >= share and c.floor < floor]
    if not better:
        return choices
    first = min(better, key=lambda choice: (choice.floor, *_order(choice)))
    return [first, *(choice for choice in choices if choice is not first)]


def _better(choice: Choice, than: Choice) -> bool:
    """Whether it meets a need that the other does not, or meets it cheaper, or gets nearer.

    Nearer is more rank that does not make lookup worse: one large head is no better than many.
    """
    if choice.meets and than.meets:
        return choice.costs.parameters < than.costs.parameters
    if choice.meets or than.meets:
        return choice.meets
    return choice.rank > than.rank and choice.floor <= than.floor


def _judged(
    candidate: Candidate, evidence: Evidence, rank: RankChoice, beside: dict[str, Costs]
) -> Choice:
    geometry = candidate.geometry
    costs, r = Costs.of(geometry, evidence.context), content_rank(geometry)
    share = judged_curve(evidence.curves).share(r)
    dimension = evidence.effective_dimension
    floor, exact = retrieval_floor(dimension, r, geometry.heads), is_exact(dimension, r)
    return Choice(
        candidate.role,
        geometry,
        costs,
        costs.against(beside["habit"]),
        costs.against(beside["largest"]),
        costs.against(beside["present"]) if "present" in beside else None,
        share,
        floor,
        exact,
        is_met(rank, r),
        choice_reasons(candidate.role, geometry, share, floor, exact, rank, looked_up(evidence)),
    )
