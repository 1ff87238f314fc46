"""The reasons below the headline: trained tasks, the need that decides, and why so many heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from headwise.advice.geometries.heads import MOST_WIDTHS
from headwise.advice.rule import MARGIN, SLACK, RankChoice
from headwise.advice.words.terms import (
    enough_words,
    is_open,
    kind_words,
    need_words,
    ranks_words,
    task_words,
)
from headwise.report.tables import counted

Values = Mapping[str, Any]

NO_TOKENS = "Without measured tokens"

UNITS = {"parameters": "parameters", "cache": "cache bytes per token"}


#: Why trained tasks say nothing about the advised geometry, though its rank is not at fault.
NOT_TRIED = {
    "tasks": "There are no trained {kind} to compare with; the rank alone decides.",
    "cost": "The trained {kind} compare geometries of equal cost, heads × rank = width. One with "
    "{share} of the usual parameters was not tried there, so whether it is better than the usual "
    "one is not known.",
    "form": "The trained {kind} compare layers in which every head has its own keys and values. "
    "Grouped and latent layers were not tried there.",
}


def evidence(v: Values) -> str:
    """What trained tasks say about leaving the usual geometry."""
    kind = kind_words(v["task"], v["data"])
    on = {"ids": " on token ids", "vectors": " on vectors", "none": ""}[v["tokens"]]
    on = "" if kind.startswith("image-") else on
    if v["need"] != "data" or v["fixed"]:
        return _overruled(v)
    if v["kept"]:
        return _short(v) if v["shortage"] else f"{_kept(v, kind, on)} {_worth_a_trial(v)}"
    if v["role"] == "present":
        return "Nothing within the costs of your model serves the need better than its geometry."
    if v["same"]:
        return _usual(v)
    if v["tokens"] == "none":
        return _unmeasured(v)
    if v["untried"] in NOT_TRIED:
        return _not_tried(v, kind + on)
    gains = _more(v, kind + on) if v["asked"] > v["usual"] else _less(v, kind + on)
    gains = f"{gains}{_untried(v)}"
    own = " and ".join(v["own"])
    use = "uses" if len(v["own"]) == 1 else "use"
    return f"{gains} {own} {use} this same data." if own else gains


def _not_tried(v: Values, kind: str) -> str:
    """That no trained task compared such a geometry, and what is known of fewer heads."""
    words = NOT_TRIED[v["untried"]].format(kind=kind, share=f"{v['share']:.0%}")
    fewer = v["untried"] == "cost" and v["share"] < 1 and v["data"] == ["images"]
    return words + " Fewer heads of one rank scored 1 to 4 points lower." * fewer


def _untried(v: Values) -> str:
    """That the trained tasks have images alone, if the user's tokens are no images."""
    only_images = v["tokens"] == "vectors" and v["data"] == ["images"]
    return " Vectors other than images were not tried." * (only_images and not v["images"])


def _overruled(v: Values) -> str:
    """That a need or a rank was given, and how far trained tasks reach."""
    words = "You set what decides, so results on trained tasks were not used."
    if v["beyond"] is None:
        return words
    why = " The rank follows from a theorem on one layer." if v["tokens"] == "none" else ""
    return (
        f"{words} None supports this at width {v['width']}: retrieval was trained at widths up to "
        f"{v['beyond']}.{why}"
    )


def _usual(v: Values) -> str:
    """Why the rule itself names the usual geometry."""
    rank, usual = v["choice"], v["usual"]
    asks = "The law for random heads suggests" if v["tokens"] == "none" else "The tokens suggest"
    if is_open(rank):
        most = "the largest that the width allows" if usual == v["width"] else "the usual one"
        return f"{asks} as much rank as possible; {usual} is {most}."
    if v["role"] != "advised":
        return "Within your limits, the usual geometry comes nearest to the need."
    if rank.enough == usual:
        return f"{asks} rank {usual}, which is the usual one."
    return (
        f"{asks} {enough_words(rank)}. The smallest head dimension that is large enough and "
        f"divides width {v['width']} is {usual}, the usual one."
    )


def _unmeasured(v: Values) -> str:
    """What decides without data where the usual geometry, or the model's, is not allowed."""
    if v["fixed_heads"]:
        return f"{NO_TOKENS} the law for random heads decides the rank of the heads that you set."
    if v["rank"] == v["usual"]:
        return f"{NO_TOKENS} headwise keeps the usual rank, with the heads that your limits allow."
    excluded = f"{_lower(_leader(v))} is not within your limits"
    if v["present"]:
        excluded = "what you set excludes your model's geometry and the usual one"
    return f"{NO_TOKENS} the law for random heads decides: {excluded}."


def _more(v: Values, kind: str) -> str:
    """What more rank than usual is worth on the trained tasks."""
    units = sorted({unit for _, unit in v["halves"]}, reverse=True)
    costs = []
    for unit in units:
        mean = fmean(cost for cost, own in v["halves"] if own == unit)
        costs.append(f"{mean:.{1 if unit == 'points' else 3}f} {unit}")
    count = len(v["halves"])
    return f"On {count} trained {kind}, half of the rank cost {' and '.join(costs)} on average."


def _less(v: Values, kind: str) -> str:
    """What less rank than usual gained on the trained tasks, unit by unit."""
    units = sorted({unit for *_, unit in v["gains"]}, reverse=True)
    return " ".join(_gains(kind, v["gains"], unit, ranks_words(v["advised"])) for unit in units)


def _gains(kind: str, rows: Sequence[Sequence[Any]], unit: str, ranks: str = "") -> str:
    """What such advice gained on the trained tasks that are scored in this unit."""
    there = f" (there {ranks})" if ranks else ""
    rows, d = [row for row in rows if row[3] == unit], 1 if unit == "points" else 3
    mean = fmean(gain for _, gain, _, _ in rows)
    largest = sorted(rows, key=lambda row: -abs(row[1]))[:4]
    gains = ", ".join(f"{name} {gain:+.{d}f} ± {error:.{d}f}" for name, gain, error, _ in largest)
    more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    return (
        f"On {len(rows)} trained {kind}, such advice{there} scored {mean:.{d}f} {unit} above the "
        f"usual geometry on average: {gains}{more}."
    )


def _leader(v: Values) -> str:
    if v["role"] == "present":
        return "Your model's geometry"
    return "The usual geometry" if v["fixed_heads"] is None or v["same"] else "Rank width / heads"


def _lower(words: str) -> str:
    return f"{words[0].lower()}{words[1:]}"


def _short(v: Values) -> str:
    """That tokens cannot tell which rank is needed, and what to pass instead."""
    tokens, numbers, width = v["size"]
    if v["shortage"] == "tokens":
        known, rank = counted(tokens, "token"), max(v["asked"], v["usual"])
        return f"{_leader(v)} leads: {known} cannot tell whether rank {rank} is needed. Pass more."
    return (
        f"{_leader(v)} leads: your tokens have {counted(numbers, 'number')}, and the model "
        f"has width {width}. Pass the vectors that its first layer gets, or token ids."
    )


def _kept(v: Values, kind: str, on: str) -> str:
    """Why the usual geometry, or the model's own, leads."""
    why = f"no trained {kind}{on} show that rank {v['asked']} is better"
    if v["tokens"] == "none":
        return (
            f"{NO_TOKENS} headwise keeps {_lower(_leader(v))}: a law for random heads is not "
            "evidence that another is better."
        )
    if v["tasks"] and not v["enough"]:
        why = f"to leave it takes two trained {kind}, one of them held out, and there are fewer"
    elif v["beyond_reach"]:
        ranks = ranks_words(v["advised"])
        why = f"trained {kind}{on} support only {ranks}, not rank {v['asked']}"
    elif v["tasks"]:
        why = _mixed(v, kind + on)
    return f"{_leader(v)} leads: {why}.{_untried(v)}"


def _mixed(v: Values, kind: str) -> str:
    """Where less rank than the usual one won and lost, beyond two standard errors."""
    won = ", ".join(name for name, gain, error, _ in v["gains"] if gain > 2 * error)
    lost = ", ".join(name for name, gain, error, _ in v["gains"] if gain < -2 * error)
    if not won or v["asked"] > v["usual"]:
        names = "; ".join(map(task_words, v["tasks"]))
        return f"on trained {kind} ({names}) another rank did not improve the score"
    unknown = "the task is unknown, and " * (v["task"] == "unknown")
    but = f"lost on {lost}" if lost else "not on the others"
    return f"{unknown}trained {kind} disagree (less rank won on {won}; {but})"


def _worth_a_trial(v: Values) -> str:
    """What did better on the judged tasks if they are too few to advise it; else the others."""
    if v["task"] == "unknown" and v["enough"]:
        return "Pass `task`."
    if v["enough"] or not v["trials"]:
        return "The others are worth a trial."
    return " ".join(
        f"{counted(heads, 'head').capitalize()} of rank {rank} is worth a trial: "
        f"{gain:.3f} ± {error:.3f} {unit} better on {task_words(name)}."
        for name, heads, rank, gain, error, unit in v["trials"]
    )


def decides(v: Values) -> str:
    """Which need decides, and the rank that is enough for it."""
    rank = v["choice"]
    given = f" You fixed rank {v['given']}." if v["given"] is not None else ""
    if v["need"] != "data":
        return f"You chose `need={v['need']}`, which alone decides: {need_words(rank)}.{given}"
    if rank.ceiling is not None:
        return f"{_paid(rank, **v['trained'])}{given}"
    if is_open(rank):
        return f"{_open(rank, v['width'])}{given}"
    enough = enough_words(rank)
    if rank.factor > 1:
        times = "twice" if rank.factor == 2 else f"{rank.factor} times"
        return (
            f"{enough.capitalize()} is enough: {times} the rank suggested by the tokens. Later "
            f"layers of trained regression tasks needed more than the first.{given}"
        )
    if rank.binds == "retrieval" or rank.retrieval_too:
        why = f"about {MARGIN} times their effective dimension of {v['dimension']:.1f}"
        if rank.retrieval + 1 < MARGIN * v["dimension"]:
            why = f"it covers every dimension they have (effectively {v['dimension']:.1f})"
        words = f"{enough.capitalize()} is enough to retrieve single tokens"
        return f"{words}: {why}. Mixing needs no more.{given}"
    words = f"{enough.capitalize()} is enough for {1 - SLACK:.0%} mixing"
    words = words if v["tokens"] else f"By the law, {enough} is enough for {1 - SLACK:.0%} mixing"
    if v["serves_both"]:
        return f"{words}, and for retrieval of single tokens.{given}"
    return f"{words}. To retrieve single tokens exactly, pass `need=retrieval`.{given}"


def _paid(rank: RankChoice, kind: str, most: Sequence[int]) -> str:
    """That trained tasks had no use for the rank suggested by the tokens."""
    named = kind_words(kind)
    return (
        f"Rank {rank.enough} is enough: on the {len(most)} trained {named}, the largest ranks "
        f"within one standard error of the best are {', '.join(map(str, sorted(most)))}. "
        f"{_asked(rank)}"
    )


def _open(rank: RankChoice, width: int) -> str:
    """That no rank up to the largest tried is known to be enough."""
    most = f"that width {width} allows" if rank.mixing == width else "tried"
    known = f"Mixing still gains at rank {rank.mixing}, the largest {most}."
    return f"{known} How much is enough is unknown."


def _asked(rank: RankChoice) -> str:
    if rank.reached and rank.mixing >= rank.retrieval:
        return f"{1 - SLACK:.0%} mixing would take rank {rank.mixing}."
    if rank.retrieval >= rank.mixing:
        return f"Retrieval of single tokens would take rank {rank.retrieval}."
    return f"Mixing still gains at rank {rank.mixing}, the largest tried."


def shape(v: Values) -> str:
    """Why heads × rank = width moved the rank."""
    multiple = f", a multiple of {v['multiple_of']}" if v["multiple_of"] > 1 else ""
    words = (
        f"{counted(v['heads'], 'head')} of rank {v['rank']}{multiple}: the lowest rank that is "
        "enough and gives heads × rank = width, as in nn.MultiheadAttention."
    )
    return f"{words} Pass `any_shape=True` to allow others." if v["free"] else words


def heads(v: Values) -> str:
    """Why there are so many heads."""
    group = v.get("group")
    of = f"as many, in groups of {group} that share a key-value head," if group else "as many"
    if v["why"] == "model":
        return f"{counted(v['heads'], 'head')}, as in your model."
    why = {
        "fixed": "as given",
        "present": f"{of} as cost no more than {_limits(v, 'parameters')}",
        "usual": "width / head_dim, "
        + ("or as many as the limits allow" if v["limits"] else "as is usual"),
        "width": f"width / rank{_rounded(v)}",
        "tried": f"{of} as {MOST_WIDTHS} widths hold; more was never trained",
        "parameters": f"{of} as {_limits(v, 'parameters')} pay for",
        "cache": f"{of} as {_limits(v, 'cache')} hold",
        "stopped": _stopped(v),
    }[v["why"]]
    many = " At equal cost, many heads of enough rank trained better than few of more rank."
    return f"{counted(v['heads'], 'head')}: {why}.{many * v.get('many', False)}{_uneven(v)}"


def _rounded(v: Values) -> str:
    """That width / rank was rounded down to a whole number, or to whole groups."""
    if v.get("exact", True):
        return ""
    group = v.get("group")
    to = f" to whole groups of {group} that share a key-value head" if group else ""
    return f", rounded down{to}"


def _uneven(v: Values) -> str:
    """That the number of heads does not divide the width, and what that excludes."""
    nearest = v.get("nearest")
    if not nearest:
        return ""
    does = "the nearest that do are" if len(nearest) > 1 else "the nearest that does is"
    return (
        f" They do not divide the width; {does} {' and '.join(map(str, nearest))}. "
        "nn.MultiheadAttention and configs without head_dim, such as GPT-2's, cannot build this; "
        "headwise's layer can."
    )


def _stopped(v: Values) -> str:
    by_rank, by_heads = v.get("by_rank", ()), v.get("by_heads", ())
    if not by_rank:
        return f"what {_limits(v, *v['limits'])} leave" if v["limits"] else "as many as are left"
    if by_rank == by_heads:
        return f"a larger rank or more heads would exceed {_limits(v, *by_rank)}"
    more = f", and more heads {_limits(v, *by_heads)}" if by_heads else ""
    return f"a larger rank would exceed {_limits(v, *by_rank)}{more}"


def _limits(v: Values, *units: str) -> str:
    named = [(unit, *v["limits"][unit]) for unit in units if unit in v["limits"]]
    own = " (your model's)"
    return " and ".join(f"{most:,} {UNITS[unit]}{own * mine}" for unit, most, mine in named)
