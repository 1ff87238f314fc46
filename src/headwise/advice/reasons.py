"""The reasons in words: what was found, and why each geometry stands where it does."""

from __future__ import annotations

from headwise.advice.curves import HALF_WIDTH, START_WORDS, RankCurve
from headwise.advice.evidence import MOST_LENGTH, Evidence, TokenStatistics
from headwise.advice.heads import HABIT
from headwise.advice.result import Choice, is_met, named, need_words, needed_rank, of_plateau
from headwise.advice.retrieval import NEGLIGIBLE, lookup_limit
from headwise.advice.rule import MARGIN, SLACK, RankChoice, judged_curve
from headwise.advice.shaping import content_rank
from headwise.advice.theory_curve import bounded_dims
from headwise.advice.unusual import unusual
from headwise.geometry import HeadGeometry
from headwise.theory.under_mask import barrier_ratio

#: Plateaus of joint and of independent rows that differ by less are told as one.
DIFFERENT_PLATEAU = 0.03

#: A mean that holds more than this share of the mean square is worth a word.
LARGE_MEAN = 0.25

#: Cosines below this are those of nearly orthonormal tokens, which the law describes.
NEARLY_ORTHONORMAL = 0.15

#: Why the rank measured lies above the law of orthonormal tokens, or below it.
SOFTER_WORDS = "softer attention has more rank"
LOWER_WORDS = "tokens that are equal, or not centred, have less rank"

ROLE_WORDS = {
    "advised": "The advised rank for queries, keys and values.",
    "whole values": "Queries and keys at the advised rank, values as wide as the layer: for "
    "when the layer must also pass on whole tokens.",
    "fewer heads": "The advised rank with fewer heads: cheaper, and trained on images it scored "
    "one to four points lower than as many as fill the width.",
    "present heads": "The advised rank in as many heads as the model has: cheaper than in more. "
    "Trained on images, fewer scored one to four points lower than as many as fill the width.",
    "half advised": "Half the advised rank: the first to try if training shows that less will do.",
    "under advised": "The least rank allowed from half the advised one on: the first to try if "
    "training shows that less will do.",
    "lookup": "Rank enough to look up single tokens exactly.",
    "limited rank": "So many heads, with the largest rank below the advised one that the limits "
    "allow them.",
    "habit": f"Habit: head dimension {HABIT}, heads = width / {HABIT}.",
    "largest": "The largest rank that was looked at or is named here.",
    "present": "The model as it is.",
}

FIXED_WORDS = "The rank that was fixed, or the largest that is left, for queries, keys and values."


def findings(evidence: Evidence, rank: RankChoice) -> tuple[str, ...]:
    """Mixing, retrieval, which of them binds, and what is unusual about the tokens."""
    lines = [_mixing(evidence, rank), _retrieval(evidence, rank), _binding(evidence, rank)]
    lines += [*_plateau(evidence), *_wide_band(evidence), *_about_tokens(evidence)]
    return tuple(lines)


def verdict(present: Choice, best: Choice, rank: RankChoice) -> str:
    """What is to be said of the geometry that a model has."""
    share, needed = present.plateau_share, needed_rank(rank)
    reaches = f"Present: {named(present.geometry)}, {of_plateau(share)} of the plateau"
    if present.meets:
        enough = "that is what is needed" if present.rank <= needed else f"rank {needed} would do"
        return f"{reaches}; {enough}."
    asked = need_words(rank)
    if best.geometry == present.geometry:
        return f"{reaches}; {asked}, and nothing of equal or lower cost comes nearer."
    if best.meets:
        return f"{reaches}; {asked}. {named(best.geometry)} would meet that at no higher cost."
    if best.rank > present.rank and best.floor <= present.floor:
        return f"{reaches}; {asked}. {named(best.geometry)} would come nearer at no higher cost."
    if best.rank > present.rank:
        return f"{reaches}; {asked}. {named(best.geometry)} would mix more, and look up less well."
    return f"{reaches}; {asked}. {named(best.geometry)}, first of what is left, comes no nearer."


def length_finding(evidence: Evidence, taken: int) -> list[str]:
    """Said where another length was measured than the model takes."""
    measured = evidence.length
    if evidence.statistics is None or measured == taken:
        return []
    words = f"Length: measured at {measured:,} tokens, the model takes {taken:,}."
    if measured > taken:
        return [f"{words} Ask again with a length of {taken} to cut them."]
    longer = min(taken, MOST_LENGTH)
    more = f": pass sequences of {longer:,}" if measured < longer else ""
    return [f"{words} Longer sequences can ask for more rank{more}."]


def choice_reasons(
    role: str,
    geometry: HeadGeometry,
    share: float,
    floor: float,
    exact: bool,
    rank: RankChoice,
    tokens: str,
) -> tuple[str, ...]:
    """Why this geometry is named, and what it reaches; ``tokens`` says what lookup is among."""
    r, needed = content_rank(geometry), needed_rank(rank)
    reached = f"Its rank {r} reaches {of_plateau(share)} of the plateau"
    if not is_met(rank, r):
        reached += f" and does not meet the need: {need_words(rank)}."
    elif r > needed:
        reached += f"; {need_words(rank)}."
    else:
        reached += "."
    fixed = role == "advised" and (rank.fixed or r < needed)
    lookup = _lookup(floor, exact, r < rank.retrieval, tokens)
    return FIXED_WORDS if fixed else ROLE_WORDS[role], reached, lookup


def looked_up(evidence: Evidence) -> str:
    """The tokens that an error of lookup is about, in words."""
    if evidence.statistics is not None:
        return "these tokens"
    return f"isotropic tokens in {evidence.width} dimensions"


def _lookup(floor: float, exact: bool, short: bool, tokens: str) -> str:
    if exact and short:
        return (
            "One head of this rank could look up exactly; training took about "
            f"{MARGIN} times the effective dimension to."
        )
    if exact:
        return "Exact lookup is possible at this rank."
    if floor < NEGLIGIBLE:
        return "Its rank is too low for one head to look up exactly; no bound forbids it to all."
    return f"Exact lookup among {tokens} must err by at least {floor:.3f}."


def _mixing(evidence: Evidence, rank: RankChoice) -> str:
    curve = judged_curve(evidence.curves)
    how = START_WORDS[curve.start]
    if evidence.mask == "causal" and evidence.statistics is not None:
        how += ", without the mask"
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


def _plateau(evidence: Evidence) -> list[str]:
    """Where the rank of these tokens tends to by theory, and whether what was measured does."""
    paper = next((c for c in evidence.curves if c.start == "paper"), None)
    if paper is None:
        return []
    points = zip(paper.mean, paper.half_width, strict=True)
    height, half = max(points)
    words = (
        f"Plateau: by theory the hardmax rank of these tokens with N(0, 1) weights tends to "
        f"{paper.plateau:.2f} of their number{_if_independent(paper)}; "
        f"{height:.2f} ± {half:.2f} was measured at most."
    )
    if height - half > paper.plateau:
        words += " Attention that is softer than hardmax has more rank."
    return [words]


def _if_independent(paper: RankCurve) -> str:
    """The rank paper's plateau, where its assumption matters."""
    other = paper.independent_plateau
    if other is None or abs(other - paper.plateau) < DIFFERENT_PLATEAU:
        return ""
    return f", {other:.2f} if its rows were independent as in the rank paper"


def _wide_band(evidence: Evidence) -> list[str]:
    """What a band wider than it should be means for the answer."""
    curve = judged_curve(evidence.curves)
    half = max(curve.half_width)
    if half <= HALF_WIDTH:
        return []
    return [
        f"The band is ± {half:.2f} after {curve.seeds} seeds: these sequences differ greatly in "
        "rank. Where it saturates is judged by differences within each draw, which are known "
        "better."
    ]


def _retrieval(evidence: Evidence, rank: RankChoice) -> str:
    if evidence.statistics is None:
        return (
            f"Retrieval: nothing is known of the tokens. Were they isotropic in all "
            f"{evidence.width} dimensions, exact lookup of one would need rank "
            f"{evidence.width}; give data to have their effective dimension measured."
        )
    dimension = evidence.statistics.effective_dimension
    own = "embedded tokens fill" if evidence.learned else "tokens fill"
    held = f", of which the width passes on {evidence.width}" if dimension > evidence.width else ""
    takes = f"{MARGIN} times that in training"
    if limit := lookup_limit(evidence):
        takes += f", at most {limit}"
    return (
        f"Retrieval: the {own} an effective dimension of {dimension:.1f}{held}; looking one of "
        f"them up takes about {takes}: rank {rank.retrieval}."
    )


def _binding(evidence: Evidence, rank: RankChoice) -> str:
    needed = needed_rank(rank)
    if rank.need != "data":
        given = f" Rank {rank.rank} was given." if rank.fixed and rank.rank != needed else ""
        return f"You asked for {rank.need}, so that alone decides: rank {needed}.{given}"
    if not evidence.learned:
        other = "retrieval" if rank.binds == "mixing" else "mixing"
        return f"{rank.binds.capitalize()} binds: rank {needed} serves {other} too."
    if rank.retrieval <= rank.mixing:
        return f"Mixing binds: rank {needed} serves retrieval too."
    because = (
        "the embedding is learned and may lay the tokens out in fewer dimensions"
        if evidence.statistics is not None
        else "the tokens are unknown"
    )
    return (
        f"Mixing decides, since {because}. If the layer must look up single tokens exactly, "
        f"retrieval binds instead: ask again with retrieval as the need."
    )


def _about_tokens(evidence: Evidence) -> list[str]:
    found = evidence.statistics
    if found is None:
        bounded = bounded_dims(evidence.length, judged_curve(evidence.curves))
        dims = ", ".join(map(str, bounded))
        bound = f"At this length the law's values at head dimensions {dims} are upper bounds."
        return ([bound] if bounded else []) + _about_mask(evidence)
    lines = [*_about_mask(evidence), _mean(found), *unusual(found)]
    by_start = {curve.start: curve for curve in evidence.curves}
    if "law" in by_start and "paper" in by_start:
        near = f"Tokens are nearly orthonormal (cosines of about {found.cosine_spread:.2f})"
        lines.append(f"{near}{_beside_the_law(by_start['paper'], by_start['law'])}")
    return lines


def _mean(found: TokenStatistics) -> str:
    """How much the mean holds, and what that means; ids have none that could be subtracted."""
    words = f"Mean: the common mean holds {found.mean_share:.0%} of the tokens' mean square."
    if found.mean_share <= LARGE_MEAN:
        return words
    if found.learned:
        return (
            f"{words} In a table drawn at random that comes of ids that return often: equal "
            "tokens lower the rank of attention."
        )
    return (
        f"{words} Inputs that are not centred lower the rank of attention: subtract the mean first."
    )


def _about_mask(evidence: Evidence) -> list[str]:
    """What a causal mask does to what is measured, or to the law."""
    if evidence.mask == "none":
        return []
    if evidence.statistics is not None:
        masked = next(c for c in evidence.curves if (c.start, c.mask) == ("model", "causal"))
        return [
            f"Causal mask: under it the rank at the model's own start is {masked.mean[0]:.2f} of "
            f"the tokens at head dimension 1, {masked.mean[-1]:.2f} at {masked.head_dims[-1]}. A "
            "triangular matrix with a positive diagonal has full rank whatever the head can do, so "
            "mixing is read without the mask; N(0, 1) weights are measured under it."
        ]
    n = evidence.length
    under, without = barrier_ratio(n, "causal"), barrier_ratio(n)
    return [
        "Causal mask: the curve is the finite law under it, where a token picks among itself and "
        f"those before. Its plateau is (n + 1) / 2n = {under:.2f}, without the mask {without:.2f}, "
        "and is reached at a lower rank."
    ]


def _beside_the_law(measured: RankCurve, law: RankCurve) -> str:
    """Whether the law lies in the band of what was measured; if not, how far off it is."""
    points = zip(measured.head_dims, measured.mean, measured.half_width, strict=True)
    off = [(mean - law.at(dim), half, dim) for dim, mean, half in points]
    if all(abs(gap) <= half for gap, half, _ in off):
        return (
            ", and the finite law describes them: it lies in the band of the rank measured with "
            "N(0, 1) weights."
        )
    gap, half, dim = max(off, key=lambda point: abs(point[0]) - point[1])
    side, because = ("above", SOFTER_WORDS) if gap > 0 else ("below", LOWER_WORDS)
    return (
        f", yet the finite law does not describe them: the rank measured with N(0, 1) weights lies "
        f"up to {abs(gap):.3f} {side} it (at head dimension {dim}, band ± {half:.3f}). The law is "
        f"the hardmax of orthonormal tokens; {because}."
    )
