"""Findings as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from headwise.advice.answer import Finding
from headwise.advice.geometries.heads import MOST_WIDTHS, USUAL_HEAD_DIM
from headwise.advice.rule import MARGIN, SLACK
from headwise.advice.words.terms import (
    START_LONG,
    TASK_FROM,
    counted,
    enough_words,
    geometry_words,
    need_words,
    percent,
)

Values = Mapping[str, Any]

UNITS = {"parameters": "parameters", "cache": "cache bytes per token"}


def sentence(finding: Finding) -> str:
    """A finding as a sentence."""
    return _SENTENCES[finding.code](finding.values)


def _task(v: Values) -> str:
    if v["task"] == "unknown":
        return "The task is unknown. Pass `task` for advice from tasks of that kind."
    return f"The task is {v['task']} ({TASK_FROM[v['from']]})."


def _evidence(v: Values) -> str:
    kind = "tasks" if v["task"] == "unknown" else f"{v['task']} tasks"
    on = {"ids": " on token ids", "vectors": " on vectors", "none": ""}[v["tokens"]]
    if v["need"] != "data" or v["fixed"]:
        return "You set what decides, so results on trained tasks were not used."
    if v["kept"]:
        return f"{_kept(v, kind, on)} {_worth_a_trial(v)}"
    if v["same"]:
        return "The rank that is enough leads to the usual geometry."
    if not v["tasks"]:
        return f"No trained {kind}{on} are on record; the rank alone leads here."
    mean = fmean(gain for _, gain, _ in v["gains"])
    largest = sorted(v["gains"], key=lambda row: -abs(row[1]))[:4]
    gains = ", ".join(f"{name} {gain:+.1f} ± {error:.1f}" for name, gain, error in largest)
    more = f" and {len(v['gains']) - 4} more" if len(v["gains"]) > 4 else ""
    return (
        f"On {len(v['gains'])} trained {kind}{on}, such advice scored {mean:.1f} points above the "
        f"usual geometry on average: {gains}{more}."
    )


def _kept(v: Values, kind: str, on: str) -> str:
    """Why the usual geometry, or the model's own, leads."""
    lead = "Your model's geometry" if v["present"] else "The usual geometry"
    why = f"no trained {kind}{on} on record show that rank {v['asked']} is better"
    if v["tokens"] == "none":
        why = "without data, results on trained tasks do not apply"
    elif v["tasks"] and not v["enough"]:
        why = f"{kind} have fewer than two results on record, one of them held out"
    elif v["tasks"]:
        why = f"on trained {kind}{on} ({', '.join(v['tasks'])}) another rank did not pay off"
    return f"{lead} leads: {why}."


def _worth_a_trial(v: Values) -> str:
    """What did better on the judged tasks if they are too few to advise it; else the others."""
    if v["enough"] or not v["trials"]:
        return "The others are worth a trial."
    return " ".join(
        f"{counted(heads, 'head').capitalize()} of rank {rank} is worth a trial: "
        f"{gain:.3f} ± {error:.3f} {unit} better on {name}."
        for name, heads, rank, gain, error, unit in v["trials"]
    )


def _present(v: Values) -> str:
    needs, best = need_words(v["rank"]), geometry_words(v["best"])
    ends = {
        "enough": "that is enough.",
        "more than needed": f"{enough_words(v['rank'])} would be enough.",
        "nothing nearer": f"{needs}. Nothing of equal or lower cost comes nearer.",
        "met by best": f"{needs}. {best} would be enough at no higher cost.",
        "nearer": f"{needs}. {best} would come nearer at no higher cost.",
        "mixes more, looks up less": f"{needs}. {best} would mix more and look up less well.",
        "no nearer": f"{needs}. {best} comes no nearer.",
    }
    words = f"Your model has {geometry_words(v['geometry'])}: {percent(v['share'])} mixing"
    return f"{words}; {ends[v['verdict']]}"


def _judged_part(v: Values) -> str:
    others = f", not {' or '.join(v['others'])}" if v["others"] else ""
    return f"This judges {v['part'] or 'the outer config'}{others}."


def _judged_encoder(v: Values) -> str:
    if v["decoder_heads"] is not None:
        return f"This judges the encoder. The decoder's {v['decoder_heads']} heads are not judged."
    at = f" and `length={v['length']}`" if v["length"] is not None else ""
    return f"This judges the encoder. For the decoder pass `mask=causal`{at}."


def _mask_from(v: Values) -> str:
    if v["from"] == "family":
        named = "a causal mask" if v["mask"] == "causal" else "no mask"
        return f"The config names no architecture; {v['family']} models have {named}."
    return (
        "The config does not say whether attention is causal, so it is judged without a mask. Pass "
        "`mask=causal` for a decoder."
    )


def _window(v: Values) -> str:
    some, every = v["layers"]
    layers = f" in {some} of {every} layers" if every else ""
    taken = "FLOPs and the law use" if v["law"] else "FLOPs use"
    return (
        f"Tokens attend at most {v['window']:,} tokens back{layers}. {taken} the whole context of "
        f"{v['context']:,}; pass `length={v['window']}` for a layer with the window."
    )


def _length(v: Values) -> str:
    words = f"Measured at {v['measured']:,} tokens; the model takes {v['context']:,}."
    if v["measured"] > v["context"]:
        return f"{words} Pass `length={v['context']}` to cut the sequences."
    more = f": pass sequences of {v['longer']:,}" if v["longer"] else ""
    return f"{words} Longer sequences can need more rank{more}."


def _mixing(v: Values) -> str:
    how = START_LONG[v["start"]] + (", without the mask" if v["without_mask"] else "")
    paper = "finds no saturation" if v["paper"] is None else f"gives {v['paper']}"
    if not v["reached"]:
        return (
            f"Mixing still gains at rank {v['rank']}, the largest tried ({how}). The rank paper's "
            f"rule {paper}."
        )
    return (
        f"Rank {v['rank']} is the first one tried at which a head is within {v['slack']:.0%} of "
        f"its plateau, {v['plateau']:.2f} of {v['length']:,} tokens ({how}). The rank paper's rule "
        f"{paper}."
    )


def _retrieval(v: Values) -> str:
    if "dimension" not in v:
        return (
            f"Without data, tokens may fill all {v['width']} dimensions. Looking one up exactly "
            f"would then need rank {v['rank']}."
        )
    own = "embedded tokens" if v["learned"] else "tokens"
    limits = {"numbers": ", at most the numbers per token", "width": ", at most the width"}
    return (
        f"Lookup needs rank {v['rank']}: the {own} have an effective dimension of "
        f"{v['dimension']:.1f}, and looking one up took about {MARGIN} times that in training"
        f"{limits.get(v['limit'], '')}."
    )


def _decides(v: Values) -> str:
    rank = v["choice"]
    given = f" You fixed rank {v['given']}." if v["given"] is not None else ""
    if v["need"] != "data":
        return f"You chose `need={v['need']}`, which alone decides: {need_words(rank)}.{given}"
    if rank.binds == "mixing" and not rank.reached:
        return f"No rank is enough: {need_words(rank)}.{given}"
    enough = enough_words(rank)
    if rank.binds == "retrieval" or rank.retrieval_too:
        return (
            f"{enough.capitalize()} is enough to look up single tokens, about {MARGIN} times their "
            f"effective dimension of {v['dimension']:.1f}; mixing needs no more.{given}"
        )
    words = f"{enough.capitalize()} is enough for {1 - SLACK:.0%} mixing"
    words = words if v["tokens"] else f"By the law, {enough} is enough for {1 - SLACK:.0%} mixing"
    if v["serves_both"]:
        return f"{words}, and for lookup of single tokens.{given}"
    return f"{words}. To look up single tokens exactly, pass `need=retrieval`.{given}"


def _shape(v: Values) -> str:
    multiple = f", a multiple of {v['multiple_of']}" if v["multiple_of"] > 1 else ""
    words = (
        f"{counted(v['heads'], 'head')} of rank {v['rank']}{multiple}: the lowest rank that is "
        "enough and gives heads × rank = width, as in nn.MultiheadAttention."
    )
    return f"{words} Pass `any_shape=True` to allow others." if v["free"] else words


def _limits(v: Values, *units: str) -> str:
    named = [(unit, *v["limits"][unit]) for unit in units if unit in v["limits"]]
    own = " (your model's)"
    return " and ".join(f"{most:,} {UNITS[unit]}{own * mine}" for unit, most, mine in named)


def _heads(v: Values) -> str:
    group = v.get("group")
    of = f"as many, in groups of {group} that share a key-value head," if group else "as many"
    why = {
        "fixed": "as given",
        "present": f"{of} as cost no more than {_limits(v, 'parameters')}",
        "usual": f"width / {USUAL_HEAD_DIM}, or as many as the limits allow"
        if v["limits"]
        else f"width / {USUAL_HEAD_DIM}, as is usual",
        "width": f"{of} as fill the width",
        "tried": f"{of} as {MOST_WIDTHS} widths hold; more was never trained",
        "parameters": f"{of} as {_limits(v, 'parameters')} pay for",
        "cache": f"{of} as {_limits(v, 'cache')} hold",
        "model": "as your model has",
        "stopped": _stopped(v),
    }[v["why"]]
    many = " At equal cost, many heads of enough rank trained better than few of more rank."
    return f"{counted(v['heads'], 'head')}: {why}.{many * v.get('many', False)}"


def _stopped(v: Values) -> str:
    by_rank, by_heads = v.get("by_rank", ()), v.get("by_heads", ())
    if not by_rank:
        return f"what {_limits(v, *v['limits'])} leave" if v["limits"] else "as many as are left"
    if by_rank == by_heads:
        return f"a larger rank or more heads would exceed {_limits(v, *by_rank)}"
    more = f", and more heads {_limits(v, *by_heads)}" if by_heads else ""
    return f"a larger rank would exceed {_limits(v, *by_rank)}{more}"


def _speed(v: Values) -> str:
    words = []
    if v["padded"]:
        ranks = " and ".join(map(str, v["padded"]))
        words.append(
            f"Fused attention kernels pad head dimensions to multiples of 8 ({ranks} here)."
        )
    if v["heads"]:
        words.append(f"Each of the {v['heads']} heads computes its own n × n scores.")
    asked = ["`multiple_of=8`"] * bool(v["multiple_of"]) + ["`heads`"] * v["fix_heads"]
    return " ".join(words + [f"Pass {' and '.join(asked)} to limit that."] * bool(asked))


def _plateau(v: Values) -> str:
    other = v["independent"]
    rows = "" if other is None else f" ({other:.2f} with independent rows, as in the rank paper)"
    words = (
        f"With N(0, 1) weights the hardmax rank of these tokens tends to {v['theory']:.2f} of "
        f"their number{rows}; measured at most {v['measured']:.2f} ± {v['half']:.2f}."
    )
    return f"{words} Attention softer than hardmax has more rank." if v["above"] else words


def _law(v: Values) -> str:
    near = f"Tokens are nearly orthonormal (cosines of about {v['cosine']:.2f})"
    if v["holds"]:
        return f"{near}, and the law describes their rank."
    side = "above it: softer attention has more rank"
    if v["gap"] < 0:
        side = "below it: equal or uncentred tokens have less rank"
    return (
        f"{near}, but the measured rank lies up to {abs(v['gap']):.3f} (± {v['half']:.3f}, head "
        f"dimension {v['dim']}) off the law, {side}."
    )


def _mean(v: Values) -> str:
    words = f"The common mean holds {v['share']:.0%} of the tokens' mean square."
    if not v["large"]:
        return words
    if v["learned"]:
        return f"{words} That comes from ids that repeat often; equal tokens lower the rank."
    return f"{words} That lowers the rank of attention: subtract the mean first."


def _outliers(v: Values) -> str:
    s, one = v["statistics"], v["count"] == 1
    hold, left = ("holds", "is left out as an outlier") if one else ("hold", "are left out")
    return (
        f"{v['count']:,} of {s.looked_at:,} tokens {hold} {s.outlier_share:.0%} of the variance "
        f"and {left}; otherwise the effective dimension would be {s.dimension_with_outliers:.1f}, "
        f"not {s.effective_dimension:.1f}."
    )


_SENTENCES: dict[str, Callable[[Values], str]] = {
    "task": _task,
    "evidence": _evidence,
    "present": _present,
    "judged part": _judged_part,
    "judged encoder": _judged_encoder,
    "mask from": _mask_from,
    "window": _window,
    "length": _length,
    "mixing": _mixing,
    "retrieval": _retrieval,
    "decides": _decides,
    "shape": _shape,
    "heads": _heads,
    "speed": _speed,
    "plateau": _plateau,
    "law": _law,
    "mean": _mean,
    "outliers": _outliers,
    "wide band": lambda v: (
        f"The band is ± {v['half']:.2f} after {v['seeds']} seeds: the sequences differ greatly in "
        "rank. Saturation is judged by differences within each seed, which are known better."
    ),
    "law bounds": lambda v: (
        f"At this length the law at head dimensions {', '.join(map(str, v['dims']))} is an upper "
        "bound."
    ),
    "mask law": lambda v: (
        f"With a causal mask the law's plateau is (n + 1) / 2n = {v['under']:.2f}, without it "
        f"{v['without']:.2f}; it is reached at a lower rank."
    ),
    "mask": lambda v: (
        f"Under the causal mask the rank is {v['first']:.2f} of the tokens at head dimension 1 and "
        f"{v['last']:.2f} at {v['dim']}: a triangular matrix with a positive diagonal has full "
        "rank whatever the head can do. So mixing is read without the mask."
    ),
    "few tokens": lambda v: (
        f"Only {v['count']:,} tokens were given; pass at least {v['enough']:,}, better some "
        "hundreds of sequences."
    ),
    "few for dimension": lambda v: (
        f"{counted(v['distinct'], 'different token')} can show at most "
        f"{counted(v['dimensions'], 'dimension')}; with more tokens retrieval may need more rank."
    ),
    "one token": lambda v: (
        f"{v['share']:.0%} of the tokens are the same one. If that is padding, remove it and ask "
        "again: it counts as a token here."
    ),
    "repeats": lambda v: (
        f"{v['share']:.0%} of the tokens occurred before in their sequence, against "
        f"{v['chance']:.0%} by chance. Equal tokens lower the rank of attention: if the sequences "
        "are padded, cut them and ask again."
    ),
    "small": lambda v: (
        f"The tokens are spread by {v['spread']:.1g}, the positions added to them by "
        f"{v['positions']}, so mixing was measured on positions too. Scale the tokens to about 1 "
        "unless the model takes them this small."
    ),
}
