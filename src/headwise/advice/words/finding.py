"""Findings as sentences, and as small tables where they are many numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwise.advice.answer import Finding
from headwise.advice.rule import MARGIN
from headwise.advice.words.reasons import decides, evidence, heads, shape
from headwise.advice.words.terms import (
    START_LONG,
    TASK_FROM,
    enough_words,
    geometry_words,
    need_words,
    percent,
    task_words,
)
from headwise.report.tables import Table, counted

Values = Mapping[str, Any]


def sentence(finding: Finding) -> str:
    """A finding as a sentence."""
    words = _SENTENCES[finding.code]
    return words.format(**finding.values) if isinstance(words, str) else words(finding.values)


def _task(v: Values) -> str:
    if v["task"] == "unknown":
        return "The task is unknown. Pass `task` for advice from tasks of that kind."
    return f"The task is {v['task']} ({TASK_FROM[v['from']]})."


def _present(v: Values) -> str:
    needs, best = need_words(v["rank"]), geometry_words(v["best"])
    ends = {
        "enough": "that is enough.",
        "more than needed": f"{enough_words(v['rank'])} would be enough.",
        "nothing nearer": f"{needs}. No geometry of equal or lower cost in the table mixes more "
        "and retrieves as well.",
        "kept, met": f"{needs}. {_rival(v)} would reach it, but {_kept_because(v)}.",
        "kept, nearer": f"{needs}. {_rival(v)} would come nearer, but {_kept_because(v)}.",
        "met by best": f"{needs}. {best} would be enough at no higher cost.",
        "nearer": f"{needs}. {best} would come nearer at no higher cost.",
        "mixes more, looks up less": f"{needs}. {best} would mix more and retrieve less well.",
        "no nearer": f"{needs}. {best} comes no nearer.",
    }
    words = f"Your model has {geometry_words(v['geometry'])}: {percent(v['share'])} mixing"
    return f"{words}; {ends[v['verdict']]}"


def _rival(v: Values) -> str:
    """What would serve better, with its cost against the model's."""
    share = v["costs"]["parameters"]
    cost = "the same" if share == 1 else f"{share:.0%} of the parameters"
    return f"{geometry_words(v['best'])} cost{'s' * (v['best'].heads == 1)} {cost} and"


def _kept_because(v: Values) -> str:
    """Why the model's geometry leads although another would serve the need better."""
    why = {
        "no data": "without measured tokens",
        "tokens": "as there are too few tokens to tell,",
        "numbers": "as your tokens are narrower than the model,",
        None: "without support by trained tasks",
    }[v["kept"]]
    return f"{why} your geometry is kept"


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
    paper = _papers_rule(v)
    if not v["reached"]:
        return f"Mixing still gains at rank {v['rank']}, the largest tried ({how}). {paper}"
    measured = v["start"] != "law"
    lies = "whose 95% band lies within" if measured else "within"
    before = f" ({_before(v)})" if v["before"] is not None else ""
    return (
        f"Rank {v['rank']} is the lowest tried {lies} {v['slack']:.0%} of the plateau, "
        f"{v['plateau']:.2f} of {v['length']:,} tokens{before}. The curve is that of {how}. {paper}"
    )


def _before(v: Values) -> str:
    """The rank tried before, with what its limit is taken from."""
    rank, mean, half = v["before"]
    if v["wide"]:
        return f"rank {rank}: {mean:.3f}, its difference to the highest point known to ± {half:.3f}"
    return f"rank {rank}: {mean:.3f}" + (f" ± {half:.3f}" if half else "")


def _papers_rule(v: Values) -> str:
    """What the rank paper's rule gives, and on which curve."""
    found = "finds no saturation" if v["paper"] is None else f"gives {v['paper']}"
    curve = "On the curve of N(0, 1) weights, the" if v["other_curve"] else "The"
    return f"{curve} rank paper's rule (stop when a doubling gains only about 0.01) {found}."


def _retrieval(v: Values) -> str:
    if "dimension" not in v:
        return (
            f"Without data, tokens may fill all {v['width']} dimensions. Retrieving one exactly "
            f"would then need rank {v['rank']}."
        )
    own = "embedded tokens" if v["learned"] else "tokens"
    limits = {
        "numbers": f" Tokens have {counted(v['numbers'], 'number')}, so a higher rank cannot help.",
        "width": f" The width is {v['width']}, so a higher rank cannot help.",
    }
    return (
        f"Retrieval needs rank {v['rank']}. In training it took about {MARGIN} times the effective "
        f"dimension of the {own}, which is {v['dimension']:.1f}.{limits.get(v['limit'], '')}"
    )


def _apart(v: Values) -> str:
    lead = "Keep one rank for queries, keys and values."
    if v["thin"] is not None:
        lead = f"{percent(v['thin'])} of the rank of values is enough for queries and keys."
    return (
        f"{lead} The table has the cost of lowering one of them alone; rank and KV bytes are in "
        "percent of those with equal ranks."
    )


def _speed(v: Values) -> str:
    words = []
    if v["padded"]:
        ranks = " and ".join(map(str, v["padded"]))
        words.append(f"Fused attention kernels pad head dimension {ranks} to a multiple of 8.")
    if v["heads"]:
        words.append(f"Each of the {v['heads']} heads computes its own n × n scores.")
    if v["multiple_of"]:
        words.insert(1, f"Pass `multiple_of={v['multiple_of']}` to avoid the padding.")
    return " ".join(words + ["Pass `heads` for fewer."] * v["fix_heads"])


def _plateau(v: Values) -> str:
    other = v["independent"]
    rows = "" if other is None else f" ({other:.2f} with independent rows, as in the rank paper)"
    words = (
        f"With N(0, 1) weights, hardmax attention on these tokens has a rank of {v['theory']:.2f} "
        f"of their number at large head dimension{rows}. Softmax attention reached at most "
        f"{v['measured']:.2f} ± {v['half']:.2f}."
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
    words = f"The mean of all tokens accounts for {v['share']:.0%} of their mean square."
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


#: The sentence of each code: a template for its values, or a function of them.
_SENTENCES: dict[str, str | Callable[[Values], str]] = {
    "task": _task,
    "evidence": evidence,
    "present": _present,
    "judged part": _judged_part,
    "judged encoder": _judged_encoder,
    "mask from": _mask_from,
    "window": _window,
    "length": _length,
    "mixing": _mixing,
    "retrieval": _retrieval,
    "decides": decides,
    "apart": _apart,
    "shape": shape,
    "heads": heads,
    "speed": _speed,
    "plateau": _plateau,
    "law": _law,
    "mean": _mean,
    "outliers": _outliers,
    "wide band": "The band is ± {half:.2f} after {seeds} seeds: the sequences differ greatly in "
    "rank. Saturation is judged by differences within each seed, which are known better.",
    "law bounds": lambda v: (
        f"At this length the law at head dimensions {', '.join(map(str, v['dims']))} is an upper "
        "bound."
    ),
    "mask law": "With a causal mask the law's plateau is (n + 1) / 2n = {under:.2f}, without it "
    "{without:.2f}; it is reached at a lower rank.",
    "mask": "Under the causal mask the rank is {first:.2f} of the tokens at head dimension 1 and "
    "{last:.2f} at {dim}: a triangular matrix with a positive diagonal has full rank whatever the "
    "head can do. So mixing is read without the mask.",
    "few tokens": "Only {count:,} tokens were given; pass {enough:,} or more.",
    "whole numbers": "All numbers are whole, and they were read as vectors: if these are token "
    "ids, store them as whole numbers.",
    "few for dimension": lambda v: (
        f"{counted(v['distinct'], 'different token')} can show at most "
        f"{counted(v['dimensions'], 'dimension')}; with more tokens retrieval may need more rank."
    ),
    "one token": "{share:.0%} of the tokens are the same one. If that is padding, remove it and "
    "ask again: it counts as a token here.",
    "repeats": "{share:.0%} of the tokens occurred before in their sequence, against {chance:.0%} "
    "by chance. Equal tokens lower the rank of attention: if the sequences are padded, cut them "
    "and ask again.",
    "small": "The tokens are spread by {spread:.1g}, the positions added to them by {positions}, "
    "so mixing was measured on positions too. Scale the tokens to about 1 unless the model takes "
    "them this small.",
}


#: The parts of a head whose rank was lowered alone.
PARTS = {"keys": "query-key", "values": "value"}


def finding_table(finding: Finding) -> Table | None:
    """The numbers of a finding as a table, if it has one."""
    if finding.code == "evidence":
        return _trained_table(finding.values)
    return _apart_table(finding.values) if finding.code == "apart" else None


def trained_words(v: Values) -> str:
    """What the table of trained tasks shows."""
    words = "What the rank rule gained over the usual geometry on trained tasks of this kind."
    digits = any(name.startswith("digits") for name, *_ in v["trained"])
    shrinks = v["task"] == "classify" and digits
    return words + " On digits, longer training made the gain smaller." * shrinks


def _trained_table(v: Values) -> Table | None:
    """The judged tasks behind the advice, with what less or more rank gained."""
    if not v["trained"] or v["need"] != "data" or v["fixed"]:
        return None
    rows = zip(v["trained"], v["gains"], strict=True)
    return Table(
        ("task", "data", "rank", "steps", "gain"),
        tuple(
            (task_words(name), data, rank, f"{steps:,}", _gain(*gain))
            for (name, data, rank, steps), (_, *gain) in rows
        ),
    )


def _gain(gain: float, error: float, unit: str) -> str:
    if not gain and not error:
        return "0: the usual rank"
    digits = 1 if unit == "points" else 3
    return f"{gain:+.{digits}f} ± {error:.{digits}f} {unit}"


def _apart_table(v: Values) -> Table:
    """What a lower rank of one part alone saves and costs, task by task."""
    return Table(
        ("rank", "KV bytes", "task", "steps", "cost"),
        tuple(
            (
                f"{PARTS[part]} {percent(share)}",
                percent(cache),
                task_words(task),
                f"{steps:,}",
                f"{cost:.3f} ± {error:.3f} {unit}",
            )
            for part, share, cache, costs in v["costs"]
            for task, cost, error, unit, steps in costs
        ),
    )
