"""Findings: what was found, as codes and values. ``words`` turns them into sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwise.advice.answer import Answer, Finding
from headwise.advice.curves import HALF_WIDTH, RankCurve, bounded_dims, point_before
from headwise.advice.evidence import Evidence
from headwise.advice.geometries.heads import (
    content_rank,
    exceeded_beyond,
    groups_leave_a_rest,
    limit_of,
    nearest_divisors,
    usual_heads,
)
from headwise.advice.judged import costs_apart, task_numbers
from headwise.advice.rule import MARGIN, SLACK
from headwise.advice.tokens.source import MOST_LENGTH
from headwise.advice.tokens.statistics import TokenStatistics
from headwise.advice.tokens.token_set import POSITION_SPREAD
from headwise.hugging_face.config import ModelConfig
from headwise.hugging_face.parts import has_both_stacks
from headwise.hugging_face.sizes import WINDOW, windowed_layers
from headwise.theory.law_formula import barrier_ratio

#: Plateaus with dependent and independent rows that differ by less are reported as one.
DIFFERENT_PLATEAU = 0.03

#: A mean that holds more than this share of the mean square is worth a remark.
LARGE_MEAN = 0.25

#: An effective dimension above this share of the number of different tokens is an underestimate:
#: for isotropic tokens by a seventh.
TOO_FEW = 0.25

#: Fewer tokens than this say nothing about others.
ENOUGH_TOKENS = 500

#: One token that makes up more than this share of all is worth a remark.
MOSTLY_ONE = 1 / 3

#: Sequences repeat themselves if more than half of their tokens occurred before, and they have
#: less than half of the different tokens that a random draw would have. Prose and code have at
#: least 0.64 of them, in words, characters and subwords.
MANY_RETURNING, FEW_DIFFERENT = 0.5, 0.5

#: Tokens should be spread at least this many times as far as positions. Below that the digits
#: saturate at rank 3, at their own scale at 4.
ABOVE_POSITIONS = 5.0

#: Fused attention kernels take head dimensions in multiples of this.
KERNEL_STEP = 8

#: More heads than this are worth a remark on speed.
MANY_HEADS = 64


def findings(answer: Answer, config: ModelConfig | None) -> tuple[Finding, ...]:
    """Every finding, in the order in which they are shown."""
    found = [_task(answer), _evidence(answer)]
    if config is not None:
        found += [_present(answer), *_about_config(config, answer.evidence)]
    found += [_mixing(answer), _retrieval(answer), _decides(answer), *_shape(answer)]
    apart = costs_apart(answer.question.task)
    found += [] if apart is None else [Finding("apart", apart)]
    found += [_heads(answer), *_speed(answer), *_about_curves(answer.evidence)]
    found += _about_tokens(answer.evidence)
    return tuple(found)


def _task(answer: Answer) -> Finding:
    return Finding("task", {"task": answer.question.task, "from": answer.question.task_from})


def _evidence(answer: Answer) -> Finding:
    support, best = answer.support, answer.best
    values: dict[str, Any] = {
        "kept": answer.kept,
        "same": best.geometry == answer.usual.geometry,
        "present": answer.present is not None,
        "role": best.role,
        "rank": best.rank,
        "fixed_heads": answer.question.constraints.heads,
        "choice": answer.rank,
        "width": answer.evidence.width,
        "beyond": answer.beyond_trained,
        "tokens": support.tokens,
        "task": support.kind,
        "need": answer.question.need,
        "fixed": answer.rank.fixed,
        "asked": answer.rank.rank,
        "usual": answer.usual.rank,
        "enough": support.enough,
        "beyond_reach": support.smaller and support.reach < answer.rank.rank < answer.usual.rank,
        "shortage": answer.shortage,
        "size": (answer.evidence.count, answer.evidence.directions, answer.evidence.width),
        "images": answer.evidence.images,
        "untried": answer.untried,
        "share": best.against_usual["parameters"],
        # A judged task is named by its data first.
        "own": [t.name for t in support.tasks if t.name.split("-")[0] == answer.evidence.source],
        **task_numbers(support.tasks),
    }
    return Finding("evidence", values)


def _present(answer: Answer) -> Finding:
    present, rival = answer.present, answer.rival
    best = rival or answer.best
    assert present is not None  # there is a config, so there is a present geometry
    values = {
        "geometry": present.geometry,
        "share": present.plateau_share,
        "verdict": answer.verdict,
        "needed": answer.rank.needed,
        "best": best.geometry,
        "costs": best.against_present,
        "kept": "no data" if answer.evidence.statistics is None else answer.shortage,
        "rank": answer.rank,
    }
    return Finding("present", values)


def _about_config(config: ModelConfig, evidence: Evidence) -> Iterator[Finding]:
    """Which part was judged, under which mask, at which length and window."""
    part, fields = config.judged, config.judged.fields
    if part.name or part.others:
        yield Finding("judged part", {"part": part.name, "others": list(part.others)})
    elif evidence.mask != "causal" and has_both_stacks(fields):
        own = fields.get("decoder_attention_heads")
        differ = own not in (None, fields.get("encoder_attention_heads"))
        length = fields.get("max_target_positions")
        values = {"decoder_heads": own if differ else None, "length": length}
        yield Finding("judged encoder", values)
    if config.mask_from != "config" and evidence.mask == config.mask:
        yield Finding(
            "mask from", {"from": config.mask_from, "family": config.family, "mask": config.mask}
        )
    window, layers = config.carried.get(WINDOW), windowed_layers(fields)
    if window is not None and layers is not None and window < evidence.context:
        values = {"window": window, "layers": layers, "context": evidence.context}
        yield Finding("window", values | {"law": evidence.statistics is None})
    measured = evidence.length
    if config.context_told and evidence.statistics is not None and measured != config.context:
        longer = min(config.context, MOST_LENGTH)
        values = {"measured": measured, "context": config.context}
        yield Finding("length", values | {"longer": longer if measured < longer else None})


def _mixing(answer: Answer) -> Finding:
    evidence, rank, curve = answer.evidence, answer.rank, answer.evidence.curve
    values = {
        "rank": rank.mixing,
        "reached": rank.reached,
        "slack": SLACK,
        "plateau": curve.plateau,
        "length": evidence.length,
        "start": curve.start,
        "without_mask": evidence.mask == "causal" and evidence.statistics is not None,
        "paper": rank.paper,
        "other_curve": any(one.start == "paper" for one in evidence.curves),
        "before": point_before(curve, rank.mixing) if rank.reached else None,
        "wide": bool(curve.below_top_half_width),
    }
    return Finding("mixing", values)


def _retrieval(answer: Answer) -> Finding:
    evidence, known = answer.evidence, answer.evidence.statistics
    values: dict[str, Any] = {"rank": answer.rank.retrieval, "width": evidence.width}
    if known is not None:
        dimension, limit = known.effective_dimension, None
        if dimension * MARGIN > evidence.directions:
            limit = "numbers" if evidence.directions < evidence.width else "width"
        values |= {"dimension": dimension, "learned": known.learned, "limit": limit}
        values |= {"numbers": evidence.directions}
    return Finding("retrieval", values)


def _decides(answer: Answer) -> Finding:
    rank = answer.rank
    values = {
        "need": rank.need,
        "binds": rank.binds,
        "rank": rank.needed,
        "given": rank.rank if rank.fixed and rank.rank != rank.needed else None,
        "serves_both": not answer.evidence.learned or rank.retrieval <= rank.mixing,
        "tokens": answer.evidence.statistics is not None,
        "choice": rank,
        "dimension": answer.evidence.effective_dimension,
        "width": answer.evidence.width,
    }
    if rank.ceiling is not None:
        most = [task.most for task in answer.support.tasks]
        values["trained"] = {"kind": answer.support.kind, "most": most}
    return Finding("decides", values)


def _shape(answer: Answer) -> Iterator[Finding]:
    """Where heads × rank = width moved the rank."""
    best, rank = answer.best, answer.rank
    if best.role == "advised" and not rank.fixed and rank.rank != rank.needed:
        fills = best.geometry.heads * best.rank == best.geometry.width
        if fills and not answer.question.any_shape:
            constraints, width = answer.question.constraints, best.geometry.width
            # Where every allowed rank is this one, another shape would not change it.
            free = constraints.rounded(rank.needed, width) != rank.rank
            values = {
                "rank": rank.rank,
                "needed": rank.needed,
                "choice": rank,
                "heads": best.geometry.heads,
                "multiple_of": constraints.multiple_of,
                "free": free,
            }
            yield Finding("shape", values)


def _heads(answer: Answer) -> Finding:
    """Why the advised geometry has its number of heads."""
    best, question = answer.best, answer.question
    geometry, constraints, budget = best.geometry, question.constraints, question.budget
    values: dict[str, Any] = {"heads": geometry.heads, "limits": dict(budget.limits)}
    if constraints.heads is not None:
        nearest = nearest_divisors(geometry.width, geometry.heads)
        return Finding("heads", values | {"why": "fixed", "nearest": nearest})
    if best.role in ("present", "usual"):
        why = "model" if best.role == "present" else "usual"
        return Finding("heads", values | {"why": why})
    beside = usual_heads(geometry.width) if budget.present is None else budget.present.heads
    values["many"] = best.meets and geometry.heads > beside
    if best.role == "advised" and geometry.heads * best.rank == geometry.width:
        return Finding("heads", values | {"why": "width", "group": None})
    if best.role not in ("advised", "lookup"):
        by_rank, by_heads = exceeded_beyond(geometry, constraints, budget)
        stopped = {"why": "stopped", "by_rank": by_rank, "by_heads": by_heads}
        return Finding("heads", values | stopped)
    limit = "width"
    if best.role == "advised":
        limit = limit_of(geometry, constraints, budget, budget.present)
    values["exact"] = geometry.heads * best.rank == geometry.width
    rest = groups_leave_a_rest(geometry, limit, budget)  # type: ignore[arg-type]
    return Finding("heads", values | {"why": limit, "group": geometry.group if rest else None})


def _speed(answer: Answer) -> Iterator[Finding]:
    """Head dimensions that kernels pad, and very many heads."""
    best, constraints = answer.best, answer.question.constraints
    geometry = best.geometry
    ranks = dict.fromkeys((geometry.qk_rank, geometry.v_rank))
    padded = [rank for rank in ranks if rank % KERNEL_STEP]
    many = geometry.heads > MANY_HEADS
    if best.role == "present" or not (padded or many):
        return
    rounds = content_rank(geometry) % KERNEL_STEP and constraints.rank is None
    values = {"padded": padded, "heads": geometry.heads if many else None}
    values["multiple_of"] = KERNEL_STEP if rounds and geometry.width >= KERNEL_STEP else None
    values["fix_heads"] = many and constraints.heads is None
    yield Finding("speed", values)


def _about_curves(evidence: Evidence) -> Iterator[Finding]:
    """Where curves tend to, how well they are known, and what the mask and the law say."""
    paper = next((c for c in evidence.curves if c.start == "paper"), None)
    if paper is not None:
        yield _plateau(paper)
    half = max(evidence.curve.half_width)
    if half > HALF_WIDTH:
        yield Finding("wide band", {"half": half, "seeds": evidence.curve.seeds})
    if evidence.statistics is None:
        bounded = bounded_dims(evidence.length, evidence.curve)
        if bounded:
            yield Finding("law bounds", {"dims": list(bounded)})
    if evidence.mask == "causal":
        yield _mask(evidence)
    law = next((c for c in evidence.curves if c.start == "law"), None)
    if paper is not None and law is not None and evidence.statistics is not None:
        yield _beside_the_law(paper, law, evidence.statistics.cosine_spread)


def _plateau(paper: RankCurve) -> Finding:
    height, half = max(zip(paper.mean, paper.half_width, strict=True))
    other = paper.independent_plateau
    differs = other is not None and abs(other - paper.plateau) >= DIFFERENT_PLATEAU
    values = {
        "theory": paper.plateau,
        "independent": other if differs else None,
        "measured": height,
        "half": half,
        "above": height - half > paper.plateau,
    }
    return Finding("plateau", values)


def _mask(evidence: Evidence) -> Finding:
    if evidence.statistics is None:
        n = evidence.length
        values = {"under": barrier_ratio(n, "causal"), "without": barrier_ratio(n)}
        return Finding("mask law", values)
    masked = next(c for c in evidence.curves if (c.start, c.mask) == ("model", "causal"))
    first, last = masked.mean[0], masked.mean[-1]
    return Finding("mask", {"first": first, "last": last, "dim": masked.head_dims[-1]})


def _beside_the_law(measured: RankCurve, law: RankCurve, cosine: float) -> Finding:
    """Whether the law lies in the band of the measured curve; if not, how far off it is."""
    points = zip(measured.head_dims, measured.mean, measured.half_width, strict=True)
    off = [(mean - law.at(dim), half, dim) for dim, mean, half in points]
    gap, half, dim = max(off, key=lambda point: abs(point[0]) - point[1])
    values = {"cosine": cosine, "gap": gap, "half": half, "dim": dim}
    return Finding("law", values | {"holds": all(abs(gap) <= half for gap, half, _ in off)})


def _about_tokens(evidence: Evidence) -> Iterator[Finding]:
    """What is unusual about the tokens: a mean, too few, repeats, outliers, small numbers."""
    found = evidence.statistics
    if found is None:
        return
    if found.whole:
        yield Finding("whole numbers")
    if found.mean_share > LARGE_MEAN:
        yield Finding("mean", {"share": found.mean_share, "learned": found.learned})
    yield from _sample(evidence.count, found)
    if found.dimension_with_outliers is not None:
        yield Finding("outliers", {"statistics": found, "count": found.outliers})
    different, usual = 1 - found.returning, 1 - found.returning_by_chance
    if found.returning > MANY_RETURNING and different < FEW_DIFFERENT * usual:
        values = {"share": found.returning, "chance": found.returning_by_chance}
        yield Finding("repeats", values)
    if found.spread is not None and found.spread < ABOVE_POSITIONS * POSITION_SPREAD:
        yield Finding("small", {"spread": found.spread, "positions": POSITION_SPREAD})


def _sample(total: int, found: TokenStatistics) -> Iterator[Finding]:
    """Too few tokens, or mostly the same one."""
    if total < ENOUGH_TOKENS:
        yield Finding("few tokens", {"count": total, "enough": ENOUGH_TOKENS})
    known = None if found.learned else found.distinct
    if known is not None and found.effective_dimension > known * TOO_FEW:
        shown = min(known - 1, found.numbers or found.width)
        yield Finding("few for dimension", {"distinct": known, "dimensions": shown})
    if found.repeated > MOSTLY_ONE:
        yield Finding("one token", {"share": found.repeated})
