"""The reasons in words: what was found, and why each geometry stands where it does."""

from __future__ import annotations

from headwise.advice.candidates import HABIT, content_rank
from headwise.advice.curves import START_WORDS
from headwise.advice.evidence import Evidence
from headwise.advice.rule import SLACK, RankChoice, judged_curve
from headwise.geometry import HeadGeometry

#: A mean that holds more than this share of the mean square is worth a word.
LARGE_MEAN = 0.25

#: Cosines below this are those of nearly orthonormal tokens, which the law describes.
NEARLY_ORTHONORMAL = 0.15

ROLE_WORDS = {
    "advised": "The advised rank for queries, keys and values.",
    "whole values": "Queries and keys at the advised rank, values as wide as the layer: for "
    "when the layer must also pass on whole tokens.",
    "more heads": "As many heads of the advised rank as the width holds: habit's parameters, "
    "spent on more heads.",
    "half the rank": "Half the advised rank: the first to try if training shows that less will do.",
    "lookup": "Rank enough to look up single tokens exactly.",
    "fewer heads": "The advised rank, with as many heads as the budget allows.",
    "smaller rank": "All heads, with the largest rank that the budget allows.",
    "smallest": "The smallest there is; the advised rank does not fit the budget.",
    "habit": f"Habit: head dimension {HABIT}, heads = width / {HABIT}.",
    "largest": "The largest rank that was looked at.",
    "present": "The model as it is.",
}


def findings(evidence: Evidence, rank: RankChoice) -> tuple[str, ...]:
    """Mixing, retrieval, which of them binds, and what is unusual about the tokens."""
    lines = [_mixing(evidence, rank), _retrieval(evidence, rank), _binding(evidence, rank)]
    lines += _about_tokens(evidence)
    return tuple(lines)


def verdict(share: float, present: HeadGeometry, rank: RankChoice) -> str:
    """What is to be said of the geometry that a model has."""
    r = content_rank(present)
    reaches = f"Present: {present.heads} heads of rank {r}, {share:.0%} of the plateau"
    if r < rank.rank:
        return f"{reaches}; fewer heads of a larger rank would mix more at the same cost."
    if r > rank.rank:
        return f"{reaches}; rank {rank.rank} would do."
    return f"{reaches}; that is the advised rank."


def choice_reasons(
    role: str, geometry: HeadGeometry, share: float, floor: float, rank: RankChoice
) -> tuple[str, ...]:
    """Why this geometry is named, and what it reaches."""
    r = content_rank(geometry)
    reached = f"Its rank {r} reaches {share:.0%} of the plateau"
    if r < rank.rank:
        reached += f", where {rank.rank} is advised."
    elif r > rank.rank:
        reached += f"; rank {rank.rank} already saturates."
    else:
        reached += "."
    return ROLE_WORDS[role], reached, _lookup(r, floor, rank)


def _lookup(rank: int, floor: float, advised: RankChoice) -> str:
    if rank >= advised.retrieval:
        return "Exact lookup is possible at this rank."
    if floor == 0:
        return "Its rank is too low for one head to look up exactly; no bound forbids it to all."
    return f"Exact lookup among these tokens must err by at least {floor:.3f}."


def _mixing(evidence: Evidence, rank: RankChoice) -> str:
    curve = judged_curve(evidence.curves)
    how = START_WORDS[curve.start]
    paper = "finds no saturation" if rank.paper is None else f"says {rank.paper}"
    if not rank.reached:
        return (
            f"Mixing: the rank is still rising at {curve.head_dims[-1]}, the largest rank looked "
            f"at ({how}); the rank paper's own rule {paper}."
        )
    return (
        f"Mixing: the rank of a head saturates at {rank.mixing} (within {SLACK:.0%} of its "
        f"plateau, {curve.plateau:.2f} of the {evidence.length:,} tokens; {how}); above that, rank "
        f"buys no more mixing. The rank paper's own rule {paper}."
    )


def _retrieval(evidence: Evidence, rank: RankChoice) -> str:
    if evidence.statistics is None:
        return (
            f"Retrieval: nothing is known of the tokens. Were they isotropic in all "
            f"{evidence.width} dimensions, exact lookup of one would need rank "
            f"{evidence.width}; pass --data to measure their effective dimension."
        )
    dimension = evidence.statistics.effective_dimension
    own = "embedded tokens fill" if evidence.learned else "tokens fill"
    return (
        f"Retrieval: the {own} an effective dimension of {dimension:.1f}; exact lookup of one "
        f"among them needs rank {rank.retrieval}."
    )


def _binding(evidence: Evidence, rank: RankChoice) -> str:
    if rank.need != "data":
        return f"You asked for {rank.need}, so that alone decides: rank {rank.rank}."
    if not evidence.learned:
        other = "retrieval" if rank.binds == "mixing" else "mixing"
        return f"{rank.binds.capitalize()} binds: rank {rank.rank} serves {other} too."
    if rank.retrieval <= rank.mixing:
        return f"Mixing binds: rank {rank.rank} serves retrieval too."
    because = (
        "the embedding is learned and may lay the tokens out in fewer dimensions"
        if evidence.statistics is not None
        else "the tokens are unknown"
    )
    return (
        f"Mixing decides, since {because}. If the layer must look up single tokens exactly, "
        f"retrieval binds instead: ask again with --need retrieval."
    )


def _about_tokens(evidence: Evidence) -> list[str]:
    found = evidence.statistics
    if found is None:
        return [
            "The law holds for orthonormal tokens and sharp attention to all of them; real tokens "
            "mostly saturate earlier."
        ]
    lines = []
    if found.mean_share > LARGE_MEAN:
        lines.append(
            f"The common mean holds {found.mean_share:.0%} of the tokens' mean square. Inputs "
            "that are not centred lower the rank of attention: subtract the mean first."
        )
    if found.cosine_spread < NEARLY_ORTHONORMAL:
        lines.append(
            f"Tokens are nearly orthonormal (cosines of about {found.cosine_spread:.2f}), so the "
            "finite law describes them too; its curve is shown."
        )
    return lines
