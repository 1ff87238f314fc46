"""Findings as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwise.advice.answer import Finding
from headwise.advice.geometries.heads import MOST_WIDTHS, USUAL_HEAD_DIM
from headwise.advice.rule import MARGIN
from headwise.advice.words.terms import (
    START_LONG,
    TASK_FROM,
    counted,
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
        return "The task is unknown. Name it (task) for advice from tasks of that kind."
    return f"The task is {v['task']} ({TASK_FROM[v['from']]})."


def _evidence(v: Values) -> str:
    kind = "tasks of unknown kind" if v["task"] == "unknown" else f"{v['task']} tasks"
    on = {"ids": " on token ids", "vectors": " on vectors", "none": ""}[v["tokens"]]
    if v["need"] != "data" or v["fixed"]:
        return "You set what decides, so judged tasks were not consulted."
    if v["kept"]:
        lead = "The model's own geometry" if v["present"] else "The usual geometry"
        why = f"no judged {kind}{on} show that rank {v['asked']} is better"
        if v["tokens"] == "none":
            why = "without data no judged task applies"
        elif v["tasks"] and not v["enough"]:
            why = f"{kind} need two judged tasks, one held out, before another is advised"
        elif v["tasks"]:
            why = f"on judged {kind}{on} ({', '.join(v['tasks'])}) leaving it did not pay off"
        return f"{lead} leads, since {why}. {_worth_a_trial(v)}"
    if v["tokens"] == "none":
        return "Without data no judged task applies; the law asks for the usual geometry anyway."
    if not v["tasks"]:
        return f"There are no judged {kind}{on}; the tokens ask for the usual geometry anyway."
    gains = ", ".join(f"{name} {gain:+.1f} ± {error:.1f}" for name, gain, error in v["gains"][:4])
    more = f" and {len(v['gains']) - 4} more" if len(v["gains"]) > 4 else ""
    return (
        f"Judged {kind}{on} support it: gain of the rank that the tokens ask for over the usual "
        f"one, in points: {gains}{more}."
    )


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
        "enough": "that is what is needed.",
        "more than needed": f"rank {v['needed']} would be enough.",
        "nothing nearer": f"{needs}. Nothing of equal or lower cost comes nearer.",
        "met by best": f"{needs}. {best} would meet that at no higher cost.",
        "nearer": f"{needs}. {best} would come nearer at no higher cost.",
        "mixes more, looks up less": f"{needs}. {best} would mix more and look up less well.",
        "no nearer": f"{needs}. {best} comes no nearer.",
    }
    words = f"The model has {geometry_words(v['geometry'])}: {percent(v['share'])} of the plateau"
    return f"{words} of mixing; {ends[v['verdict']]}"


def _judged_part(v: Values) -> str:
    others = f", not {' or '.join(v['others'])}" if v["others"] else ""
    return f"This judges {v['part'] or 'the outer config'}{others}."


def _judged_encoder(v: Values) -> str:
    if v["decoder_heads"] is not None:
        return f"This judges the encoder. The decoder's {v['decoder_heads']} heads are not judged."
    at = f" and length={v['length']}" if v["length"] is not None else ""
    return f"This judges the encoder. For the decoder pass mask=causal{at}."


def _mask_from(v: Values) -> str:
    if v["from"] == "family":
        return f"The config names no architecture; {v['family']} models have mask={v['mask']}."
    return (
        "The config does not say whether attention is causal, so it is judged without a mask. Pass "
        "mask=causal for a decoder."
    )


def _window(v: Values) -> str:
    some, every = v["layers"]
    layers = f" in {some} of {every} layers" if every else ""
    taken = "FLOPs and the law use" if v["law"] else "FLOPs use"
    return (
        f"Tokens attend at most {v['window']:,} tokens back{layers}. {taken} the whole context of "
        f"{v['context']:,}; pass length={v['window']} for a layer with the window."
    )


def _length(v: Values) -> str:
    words = f"Measured at {v['measured']:,} tokens; the model takes {v['context']:,}."
    if v["measured"] > v["context"]:
        return f"{words} Pass length={v['context']} to cut the sequences."
    more = f": pass sequences of {v['longer']:,}" if v["longer"] else ""
    return f"{words} Longer sequences can need more rank{more}."


def _mixing(v: Values) -> str:
    how = START_LONG[v["start"]] + (", without the mask" if v["without_mask"] else "")
    paper = "finds no saturation" if v["paper"] is None else f"gives {v['paper']}"
    if not v["reached"]:
        return (
            f"Mixing still gains at rank {v['rank']}, the largest looked at ({how}). The rank "
            f"paper's rule {paper}."
        )
    return (
        f"Mixing saturates at rank {v['rank']}: there the rank of a head is within "
        f"{v['slack']:.0%} of its plateau, {v['plateau']:.2f} of {v['length']:,} tokens ({how}). "
        f"The rank paper's rule {paper}."
    )


def _retrieval(v: Values) -> str:
    if "dimension" not in v:
        return (
            f"Retrieval: without data, tokens may fill all {v['width']} dimensions; looking one up "
            f"exactly would then need rank {v['rank']}."
        )
    own = "embedded tokens" if v["learned"] else "tokens"
    limits = {"numbers": ", at most the numbers per token", "width": ", at most the width"}
    return (
        f"Retrieval needs rank {v['rank']}: the {own} have an effective dimension of "
        f"{v['dimension']:.1f}, and looking one up took about {MARGIN} times that in training"
        f"{limits.get(v['limit'], '')}."
    )


def _decides(v: Values) -> str:
    given = f" Rank {v['given']} was given." if v["given"] is not None else ""
    if v["need"] != "data":
        return f"You chose need={v['need']}: that alone decides, rank {v['rank']}.{given}"
    words = f"{v['binds'].capitalize()} decides the rank that the tokens ask for, {v['rank']}"
    if v["serves_both"]:
        other = "retrieval" if v["binds"] == "mixing" else "mixing"
        return f"{words}; it serves {other} too.{given}"
    why = "training can embed ids in fewer dimensions" if v["tokens"] else "tokens are unknown"
    return f"{words}, since {why}. To look up single tokens exactly, pass need=retrieval.{given}"


def _shape(v: Values) -> str:
    return (
        f"Rank {v['rank']} instead of {v['needed']}, so that heads × rank = width, as "
        "nn.MultiheadAttention has it. Pass any_shape to free that."
    )


def _limits(v: Values, *units: str) -> str:
    named = [(unit, *v["limits"][unit]) for unit in units if unit in v["limits"]]
    own = " (the present model's)"
    return " and ".join(f"{most:,} {UNITS[unit]}{own * mine}" for unit, most, mine in named)


def _heads(v: Values) -> str:
    group = v.get("group")
    of = f"as many, in groups of {group} that share a key-value head," if group else "as many"
    why = {
        "fixed": "as given",
        "present": f"{of} as cost no more than {_limits(v, 'parameters')}",
        "usual": f"width / {USUAL_HEAD_DIM} as usual, within the limits",
        "width": f"{of} as fill the width",
        "tried": f"{of} as {MOST_WIDTHS} widths hold; more was never trained",
        "parameters": f"{of} as {_limits(v, 'parameters')} pay for",
        "cache": f"{of} as {_limits(v, 'cache')} hold",
        "model": "as the model has",
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
    asked = ["multiple_of=8"] * bool(v["multiple_of"]) + ["heads"] * v["fix_heads"]
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
        return f"{near}, and the finite law describes their rank."
    side = "above it: softer attention has more rank"
    if v["gap"] < 0:
        side = "below it: equal or uncentred tokens have less rank"
    return (
        f"{near}, but the measured rank lies up to {abs(v['gap']):.3f} (± {v['half']:.3f}, head "
        f"dimension {v['dim']}) off the finite law, {side}."
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
