"""Advise: from tokens, from numbers, or from a model's config to ranked geometries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.advice.candidates import (
    Candidate,
    candidates,
    content_rank,
    lookup,
    once_each,
    references,
    usual_heads,
)
from headwise.advice.config import ModelConfig, read_config
from headwise.advice.costs import Costs
from headwise.advice.evidence import Evidence
from headwise.advice.question import (
    CACHE_NUMBER,
    FREE,
    NO_LIMIT,
    Budget,
    Constraints,
    MaskName,
    Need,
    checked_mask,
    checked_need,
    checked_size,
)
from headwise.advice.reasons import (
    NEARLY_ORTHONORMAL,
    choice_reasons,
    findings,
    heads_reason,
    verdict,
)
from headwise.advice.result import Advice, Choice, needed_rank
from headwise.advice.retrieval import is_exact, retrieval_floor
from headwise.advice.rule import RankChoice, choose_rank, judged_curve
from headwise.advice.sizes import KnownSizes
from headwise.advice.theory_curve import law_curve
from headwise.geometry import HeadGeometry, LatentGeometry

if TYPE_CHECKING:
    from headwise.advice.curves import RankCurve
    from headwise.advice.embedding import TokenSet
    from headwise.advice.measuring import Sampling

#: Tokens of a longer sequence that are looked at.
MOST_LENGTH = 512


def advise(
    tokens: Any,
    *,
    width: int | None = None,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName = "none",
    seed: int = 0,
) -> Advice:
    """Heads and ranks for these tokens: vectors (batch, sequence, width), or whole numbers, ids.

    ``width`` is that of the model; vectors of another width get a linear embedding into it.
    ``mask`` is "causal" for a model whose tokens attend to themselves and those before alone.

    >>> import torch
    >>> tokens = torch.randn(8, 24, 16, generator=torch.Generator().manual_seed(0))
    >>> advice = advise(tokens, width=32, budget=Budget(parameters=4096))
    >>> advice.best.geometry.parameters <= 4096
    True
    """
    from headwise.advice.measuring import Sampling

    evidence = evidence_of(tokens, width, Sampling(seed, mask=mask))
    return decide(evidence, budget, constraints, need)


def advise_numbers(
    length: int,
    width: int,
    *,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName = "none",
) -> Advice:
    """The same from two numbers alone, by the finite law of orthonormal tokens.

    The law is that of attention without a mask; with "causal" the answer says so.

    >>> advise_numbers(512, 768).best.geometry
    HeadGeometry(width=768, heads=8, kv_heads=8, qk_rank=96, v_rank=96)
    """
    return decide(numbers_evidence(length, width, mask), budget, constraints, need)


def advise_config(
    path: Path | str,
    *,
    length: int | None = None,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName | None = None,
) -> Advice:
    """Judge the geometry of a model by its config.json, and offer others that cost no more.

    The mask is the config's own unless given.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "config.json"
    >>> _ = place.write_text('{"n_embd": 768, "n_head": 12, "n_positions": 512}')
    >>> advise_config(place).references[0].geometry.heads
    12
    """
    config = read_config(path)
    width = config.geometry.width
    evidence = numbers_evidence(length or config.context, width, mask or config.mask)
    return decide_for(config, evidence, budget, constraints, need)


def numbers_evidence(length: int | float, width: int | float, mask: MaskName = "none") -> Evidence:
    """What is known from a length and a width: the law.

    >>> numbers_evidence(128, 64).curves[0].start
    'law'
    """
    n = checked_size("the length", length, 2, 10**12)
    d = checked_size("the width", width, 2, 10**6)
    checked_mask(mask)
    words = f"{n:,} tokens, width {d}{_mask_words(mask)}: the finite law, no data"
    return Evidence(words, n, d, (law_curve(n, d),), None, 0, mask)


def evidence_of(tokens: Any, width: int | None, sampling: Sampling) -> Evidence:
    """What is measured of tokens: their statistics and rank curves from two starts.

    >>> import torch
    >>> from headwise.advice.measuring import Sampling
    >>> [curve.start for curve in evidence_of(torch.eye(8), None, Sampling()).curves]
    ['model', 'paper', 'law']
    """
    from headwise.advice.tokens import token_statistics

    found = _as_token_set(tokens, width)
    short = replace(found, values=found.values[:, :MOST_LENGTH])
    statistics = token_statistics(short, sampling.seed)
    curves = _measured(short, sampling)
    if statistics.cosine_spread < NEARLY_ORTHONORMAL and sampling.mask == "none":
        curves += (law_curve(short.length, short.width),)
    cut = f" (the first {MOST_LENGTH} of {found.length})" if found.length > MOST_LENGTH else ""
    words = f"{found.name}: {found.sequences:,} sequences of {short.length} tokens{cut}"
    words += f", width {found.width}{_mask_words(sampling.mask)}"
    size = (short.length, found.width)
    return Evidence(words, *size, curves, statistics, sampling.seed, sampling.mask, found.declared)


def decide(evidence: Evidence, budget: Budget, constraints: Constraints, need: Need) -> Advice:
    """Rank the geometries that the evidence, the budget and the constraints leave."""
    rank = _chosen_rank(evidence, constraints, need)
    heads = constraints.heads or min(usual_heads(evidence.width), evidence.width // rank.rank or 1)
    answer = _ranked(evidence, rank, heads, constraints, budget, [])
    sizes = KnownSizes(None, None, evidence.vocabulary, evidence.length)
    told = (*answer.findings, *_about_heads(answer, heads, constraints))
    return replace(answer, findings=told, sizes=sizes)


def decide_for(
    config: ModelConfig, evidence: Evidence, budget: Budget, constraints: Constraints, need: Need
) -> Advice:
    """The same for a model that exists: what it has is judged, and nothing dearer is offered."""
    present = config.geometry
    if constraints.kind is None:
        constraints = replace(constraints, kind=_kind(present), group=present.group)
    if isinstance(present, LatentGeometry):
        constraints = replace(constraints, latent=present)
    cached = present.cache_bytes_per_token(CACHE_NUMBER)
    budget = Budget(
        min(budget.parameters or present.parameters, present.parameters),
        min(budget.cache_bytes or cached, cached),
    )
    words = f"{config.family} ({evidence.words})"
    evidence = replace(evidence, words=words)
    rank = _chosen_rank(evidence, constraints, need)
    heads = constraints.heads or present.heads
    shown = [Candidate("present", present)]
    answer = _ranked(evidence, rank, heads, constraints, budget, shown)
    own = answer.references[0]
    allowed = budget.allows(present) and constraints.keeps(present.heads, own.rank)
    if allowed and not any(_better(choice, own) for choice in answer.choices):
        answer = replace(answer, choices=(own, *answer.choices))
    sizes = config.sizes
    if sizes.vocabulary is None:
        sizes = replace(sizes, vocabulary=evidence.vocabulary)
    told = (verdict(own, answer.best, rank), *answer.findings)
    told += _about_heads(answer, heads, constraints, present)
    return replace(answer, findings=told, sizes=sizes)


def _about_heads(
    answer: Advice, heads: int, constraints: Constraints, present: HeadGeometry | None = None
) -> tuple[str, ...]:
    """Nothing where their number was fixed beforehand."""
    return (heads_reason(answer.best, heads, present),) if constraints.heads is None else ()


def _measured(tokens: TokenSet, sampling: Sampling) -> tuple[RankCurve, ...]:
    """Both starts under the mask. Under a causal one the model's start is also measured without.

    A triangular matrix with a positive diagonal is of full rank whatever the head can do, so
    where saturation is read the mask must not be.
    """
    from headwise.advice.measuring import measured_curve

    curves = tuple(measured_curve(tokens, start, sampling) for start in ("model", "paper"))
    if sampling.mask == "none":
        return curves
    return measured_curve(tokens, "model", replace(sampling, mask="none")), *curves


def _mask_words(mask: MaskName) -> str:
    return ", causal mask" if mask == "causal" else ""


def _as_token_set(tokens: Any, width: int | None) -> TokenSet:
    import torch

    from headwise.advice.embedding import TokenSet, token_set

    if isinstance(tokens, TokenSet):
        return tokens
    return token_set(torch.as_tensor(tokens), width)


def _kind(geometry: HeadGeometry) -> str:
    if isinstance(geometry, LatentGeometry):
        return "mla"
    return "mha" if geometry.kv_heads == geometry.heads else "gqa"


def _chosen_rank(evidence: Evidence, constraints: Constraints, need: Need) -> RankChoice:
    dimension = evidence.effective_dimension
    checked_need(need)
    constraints.refuse_beyond(evidence.width)
    found = choose_rank(evidence.curves, dimension, evidence.width, evidence.learned, need)
    if constraints.rank is not None:
        return replace(found, rank=constraints.rank)
    return replace(found, rank=constraints.rounded(found.rank))


def _ranked(
    evidence: Evidence,
    rank: RankChoice,
    heads: int,
    constraints: Constraints,
    budget: Budget,
    shown: list[Candidate],
) -> Advice:
    offered = _offered(evidence.width, rank, heads, constraints, budget)
    named = max(
        max(content_rank(c.geometry), c.geometry.v_rank)  # of queries and keys, and of values
        for c in [*offered, *shown]
    )
    largest_rank = max(named, judged_curve(evidence.curves).head_dims[-1])
    beside = shown + references(evidence.width, heads, largest_rank)
    costs = {c.role: Costs.of(c.geometry, evidence.length) for c in beside}

    def judged(candidate: Candidate) -> Choice:
        return _judged(candidate, evidence, rank, costs)

    known = {c.geometry for c in shown}
    choices = [judged(c) for c in offered if c.geometry not in known]
    choices.sort(key=_order)
    return Advice(
        evidence,
        rank,
        tuple(choices),
        tuple(judged(candidate) for candidate in beside),
        findings(evidence, rank),
    )


def _offered(
    width: int, rank: RankChoice, heads: int, constraints: Constraints, budget: Budget
) -> list[Candidate]:
    """The shapes of the advised rank, and heads for lookup where that asks for more."""
    found = candidates(width, rank.rank, heads, constraints, budget)
    if rank.retrieval > rank.rank and constraints.rank is None:
        looking = lookup(width, rank.retrieval, constraints)
        found += [looking] if budget.allows(looking.geometry) else []
    return once_each(found)


def _order(choice: Choice) -> tuple[bool, int, int]:
    """What meets the need first, there the advised shape, then the cheapest.

    What does not meet it comes by how far it gets.
    """
    place = {"advised": 0, "lookup": 2}.get(choice.role, 1)
    return not choice.meets, place if choice.meets else -choice.rank, choice.costs.parameters


def _better(choice: Choice, than: Choice) -> bool:
    """Whether it meets a need that the other does not, or meets it cheaper, or gets nearer."""
    if choice.meets and than.meets:
        return choice.costs.parameters < than.costs.parameters
    return choice.meets or (choice.rank > than.rank and not than.meets)


def _judged(
    candidate: Candidate, evidence: Evidence, rank: RankChoice, beside: dict[str, Costs]
) -> Choice:
    geometry = candidate.geometry
    costs, r = Costs.of(geometry, evidence.length), content_rank(geometry)
    share = judged_curve(evidence.curves).share(r)
    dimension = evidence.effective_dimension
    floor, exact = retrieval_floor(dimension, r, geometry.heads), is_exact(dimension, r)
    return Choice(
        candidate.role,
        geometry,
        costs,
        costs.against(beside["habit"]),
        costs.against(beside["largest"]),
        share,
        floor,
        exact,
        r >= needed_rank(rank),
        choice_reasons(candidate.role, geometry, share, floor, exact, rank),
    )
