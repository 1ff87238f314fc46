"""The answer as sentences: headline, reasons, caveat, cells and notes of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwise.advice.answer import Answer, Choice
from headwise.advice.geometries.heads import NEGLIGIBLE
from headwise.advice.question import kind_of
from headwise.advice.rule import MARGIN, SLACK, RankChoice, whole_dimension
from headwise.advice.words.finding import sentence
from headwise.advice.words.terms import (
    TASK_FROM,
    enough_words,
    geometry_words,
    is_open,
    need_words,
    percent,
)
from headwise.geometry import USUAL_HEAD_DIM
from headwise.report.tables import counted

CLOSING = (
    "This measures the first layer before training and promises nothing about the trained model. "
    "The trained tasks behind this advice have widths of 32 to 256 and at most 6 layers; how the "
    "best rank changes with width, depth or length is not known. Train two or three of these "
    "geometries before you rely on one: headwise trial."
)

NO_DATA = (
    "No data was given, so this uses a law for random heads, which suggests more rank than most "
    "real tokens do. Pass data to have it measured."
)

#: Layers of the model that ``headwise trial`` builds by default.
TRIAL_DEPTH = 2

NOT_YOURS = f"headwise trial trains a small built-in model of {TRIAL_DEPTH} layers, not your model."

START = {"model": "U(±1/√d) weights, as nn.Linear", "paper": "N(0, 1) weights", "law": "law"}

#: Where a length comes from that nobody gave.
LENGTH_FROM = {
    "given": "",
    "family": " (the family's default)",
    "assumed": " (assumed: the config gives none)",
}

ROLES: dict[str, str] = {
    "advised": "The rank that is enough for these tokens, in queries, keys and values.",
    "whole values": "That rank for queries and keys, with full-width values: for layers that must "
    "pass on whole tokens.",
    "fewer heads": "That rank with fewer heads: cheaper. On images it scored 1 to 4 points lower.",
    "present heads": "That rank with the model's number of heads: cheaper than more heads. On "
    "images, fewer heads scored 1 to 4 points lower.",
    "half rank": "About half the suggested rank: try it if training shows that less is enough.",
    "lookup": "Enough rank to retrieve single tokens exactly.",
    "limited rank": "The largest rank below that which the limits allow.",
    "usual": f"The usual choice: head_dim {USUAL_HEAD_DIM}, or the nearest that divides the width.",
    "largest": "The largest rank that was tried.",
    "present": "The model as it is.",
}

#: Cells of the column "enough" for what costs too much, and what they mean.
OVER = {
    "over limit": "it costs more than the limit that was set.",
    "over yours": "it costs more than your model, so it is not offered.",
}

#: Names of rows that differ from the role.
ROW_NAMES = {
    "present": "your model",
    "limited rank": "lower rank",
    "present heads": "your heads",
    "whole values": "full values",
    "lookup": "retrieval",
}

#: The cell of the column "retrieval" where the bound says nothing.
NO_BOUND = "–"

#: Names of findings, for lists; others are named by their code.
LABELS = {
    "decides": "Need",
    "judged part": "Part",
    "judged encoder": "Part",
    "retrieval": "Retrieval",
    "apart": "Ranks",
    "mask from": "Mask",
    "mask law": "Mask",
    "law bounds": "Law",
    "wide band": "Band",
    "few tokens": "Tokens",
    "whole numbers": "Tokens",
    "few for dimension": "Tokens",
    "one token": "Repeats",
    "small": "Scale",
    "evidence": "Evidence",
    "present": "Model",
}


def question_words(answer: Answer) -> str:
    """What was asked, in one line."""
    evidence, known = answer.evidence, answer.evidence.statistics
    words = f"{answer.family}, " if answer.family else ""
    if known is None:
        words += f"{evidence.length:,} tokens{LENGTH_FROM[evidence.length_from]}"
    else:
        words += f"{evidence.source}: {counted(known.sequences, 'sequence')} of {known.length}"
        words += " tokens"
    mask = ", causal mask" if evidence.mask == "causal" else ""
    task, known_from = answer.question.task, TASK_FROM[answer.question.task_from]
    named = "task not given (pass `task`)" if task == "unknown" else f"task: {task} ({known_from})"
    return f"{words}, width {evidence.width}{mask}; {named}"


def headline(answer: Answer) -> str:
    """The answer in one sentence."""
    best = answer.best
    chosen = f"{_verb(answer)} {geometry_words(best.geometry)} at width {best.geometry.width}"
    costs = f"{best.costs.parameters:,} parameters, {_compared(answer)}"
    if best.meets:
        return f"{chosen}: {costs}."
    if answer.kept:
        return f"{chosen} ({costs}){_suggests_more(answer)}."
    return f"{chosen} ({costs}), {_lacks(answer, best)}."


def caveat(answer: Answer) -> str:
    """What to know before the answer is believed."""
    doubts = [answer.finding(code) for code in ("whole numbers", "few tokens")]
    parts = [*(sentence(one) for one in doubts if one is not None), CLOSING]
    if answer.evidence.statistics is None:
        parts = [NO_DATA]
    return " ".join(parts + [NOT_YOURS] * (answer.present is not None))


def reasons(answer: Answer) -> list[str]:
    """The three reasons that decide; ``words.reasons`` holds their sentences."""
    found = [answer.finding(code) for code in reason_codes(answer)]
    return [sentence(one) for one in found if one is not None]


def reason_codes(answer: Answer) -> list[str]:
    """The findings that are reasons; every face shows them once, beside the answer."""
    return ["evidence", "decides", "heads" if answer.finding("shape") is None else "shape"]


def row_name(answer: Answer, choice: Choice) -> str:
    """What a row of the table is called."""
    if choice.role == "half rank" and not _halves_a_row(answer, choice):
        return ROW_NAMES["limited rank"]
    if answer.kept and choice.role in ("advised", "half rank"):
        found = "predicted rank" if answer.evidence.statistics is None else "measured rank"
        return found if choice.role == "advised" else f"half {found.split()[0]}"
    if choice.role == "usual" and choice.geometry != answer.usual.geometry:
        return _nearly_usual(answer, choice)
    if choice.role == "limited rank" and choice.rank == answer.usual.rank:
        return "fewer heads"
    return ROW_NAMES.get(choice.role, choice.role)


def _halves_a_row(answer: Answer, choice: Choice) -> bool:
    """Whether this is half of a rank that the table shows; rounding and limits can prevent it."""
    whole = [one.rank for one in answer.choices if one.role == "advised"]
    return any(2 * choice.rank - rank in (0, 1) for rank in whole)


def _nearly_usual(answer: Answer, choice: Choice) -> str:
    """What the usual geometry is called under limits, a step between ranks or a form of layer."""
    usual, own = answer.usual.geometry, choice.geometry
    if choice.rank != answer.usual.rank:
        fixed = answer.question.constraints.heads is not None
        return "width / heads" if fixed else "usual, rounded"
    if own.heads != usual.heads:
        return "usual, fewer"
    return "usual, latent" if kind_of(own) == "mla" else "usual, grouped"


def choice_words(answer: Answer, choice: Choice) -> str:
    """Why a choice is listed, and what it can do."""
    role = ROLES[choice.role]
    if answer.evidence.statistics is None:
        role = role.replace("for these tokens", "by the law")
    if not choice.meets:
        return f"{role} {_short_of(answer, choice)}"
    return f"{role} It reaches {percent(choice.plateau_share)} mixing."


def legend(answer: Answer, shown: Sequence[Choice]) -> list[str]:
    """What the columns of the table of these choices mean, one line each."""
    rank = answer.rank
    known_by = "by the law" if answer.evidence.statistics is None else "with 95% confidence"
    enough, verb = f"reaches {1 - SLACK:.0%} mixing {known_by}", "does"
    if rank.binds == "retrieval" or rank.retrieval_too:
        enough, verb = "can retrieve single tokens", "can"
    if rank.factor > 1:
        enough, verb = "is enough for regression", "is"
    if rank.ceiling is not None:
        enough, verb = "reaches what was enough on trained tasks", "does"
    known = not is_open(rank)
    least = (
        f" ({enough_words(rank)} {verb}{_rounded_up(answer)})"
        if known
        else f" (unknown: it rises up to rank {rank.mixing})"
    )
    unbounded = any(retrieval_words(rank, choice) == NO_BOUND for choice in shown)
    no_bound = f"; {NO_BOUND}: no bound" * unbounded
    over = {over_words(answer, choice) for choice in shown}
    return [
        _rank_columns([*answer.choices, *answer.references]),
        "mixing: attention rank before training, in % of that at large head dimension.",
        "retrieval: lower bound on the mean squared error of retrieving one token "
        f"(0 = exact, 0.5 = without attention){no_bound}.",
        f"enough: whether the rank {enough}{least}.",
        *([_kept_below(answer)] if known and answer.kept and not answer.best.meets else []),
        *(f"{word}: {meaning}" for word, meaning in OVER.items() if word in over),
    ]


def _rounded_up(answer: Answer) -> str:
    """Where heads × rank = width moved the advised rank above the one that is enough."""
    if answer.finding("shape") is None:
        return ""
    return f", rounded up to {answer.best.rank} so that heads × rank = width"


def _rank_columns(choices: Sequence[Choice]) -> str:
    """Explain the column "rank", and "values" and "kv" if the table has them."""
    words = ["rank: head dimension of queries and keys"]
    if any(choice.geometry.v_rank != choice.rank for choice in choices):
        words.append("values: that of values")
    if any(choice.geometry.kv_heads != choice.geometry.heads for choice in choices):
        words.append("kv: key-value heads")
    return f"{'; '.join(words)}."


def notes(answer: Answer) -> list[str]:
    """What the columns of the tables mean, in detail."""
    effective = answer.evidence.effective_dimension
    dimension = whole_dimension(effective)
    rounded = f"{effective:.1f} rounded up; " if f"{effective:.1f}" != f"{dimension:.1f}" else ""
    return [
        "mixing: numerical rank of a head's attention matrix before training, as a share of its "
        "plateau, the value that it tends to for large head dimensions.",
        "retrieval: lower bound on the mean squared error of retrieving the nearer of two tokens "
        f"in {dimension} dimensions ({rounded}heads paper; 0.5 without attention). 0: one head can "
        f"be exact. Training took a rank of {MARGIN} times the effective dimension to get there; "
        f"below that, {NO_BOUND} is shown.",
        f"FLOPs: per token, at {answer.evidence.context:,} tokens of context. KV bytes: per token "
        "of one layer, in 16-bit numbers.",
    ]


def over_words(answer: Answer, choice: Choice) -> str | None:
    """How a choice costs too much, as a cell of a table; None if it does not."""
    budget = answer.question.budget
    over = budget.exceeded_by(choice.geometry)
    if not over:
        return None
    return "over yours" if all(budget.limits[unit][1] for unit in over) else "over limit"


def met_words(rank: RankChoice, choice: Choice) -> str:
    """Whether a choice has enough rank, as a cell of a table."""
    if choice.meets:
        return "yes"
    return "unknown" if is_open(rank) else "no"


def retrieval_words(rank: RankChoice, choice: Choice) -> str:
    """The retrieval error of a choice, as a cell of a table."""
    if choice.exact and choice.rank >= rank.retrieval:
        return "0"
    return f"≥ {choice.floor:.3f}" if choice.floor >= NEGLIGIBLE else NO_BOUND


def assumed_words(sizes: Mapping[str, int]) -> str:
    """Sizes of an export that are defaults."""
    return "assumed, change them to yours: " + ", ".join(f"{k} {v}" for k, v in sizes.items())


def _verb(answer: Answer) -> str:
    if answer.best.role == "present":
        return "Keep"
    sure = answer.evidence.statistics is not None and answer.beyond_trained is None
    return "Use" if sure and not answer.kept and answer.untried is None else "Start with"


def _compared(answer: Answer) -> str:
    best, usual = answer.best, answer.usual
    if best.geometry == usual.geometry:
        return f"the usual head_dim of {usual.rank}"
    share = best.against_usual["parameters"]
    many = "as many as" if share == 1 else f"{share:.0%} of"
    if answer.present is not None and answer.present.geometry == usual.geometry:
        return f"{many} your model's {geometry_words(usual.geometry)}"
    words = f"{many} the usual {geometry_words(usual.geometry)}"
    if best.against_present is None or best.role == "present":
        return words
    return f"{words}, {best.against_present['parameters']:.0%} of your model's"


def _suggests_more(answer: Answer) -> str:
    """What suggests more rank than the geometry that leads, and why that does not decide."""
    rank = answer.rank
    if answer.evidence.statistics is not None:
        return f", although the tokens suggest more rank ({need_words(rank)})"
    found = f"the law for random heads suggests {enough_words(rank)}"
    if is_open(rank):
        found = f"by the law for random heads {need_words(rank)}"
    return f"; {found}, but this is not evidence: pass your data to measure it"


def _lacks(answer: Answer, choice: Choice) -> str:
    """That the rank of the advised geometry is too low, or not known to be enough."""
    if not is_open(answer.rank):
        return f"although its rank is too low: {need_words(answer.rank)}"
    if choice.rank < answer.evidence.width:
        return f"but it is unknown whether its rank is enough: {need_words(answer.rank)}"
    return "the largest rank of that width, but it is unknown whether that is enough"


def _kept_below(answer: Answer) -> str:
    """Why the arrow of the table stands at a rank that its last column rejects."""
    leader = "The usual" if answer.best.geometry == answer.usual.geometry else "The first"
    leader = "Your model's" if answer.best.role == "present" else leader
    why = "trained tasks give no reason to leave it"
    if answer.evidence.statistics is None:
        why = "without measured tokens it is kept"
    return f"{leader} geometry is below that; {why}."


def _short_of(answer: Answer, choice: Choice) -> str:
    """That a choice has too low a rank, or that nobody knows whether it has."""
    rank = answer.rank
    if not is_open(rank):
        by_law = answer.evidence.statistics is None
        return f"{'By the law its' if by_law else 'Its'} rank is too low: {need_words(rank)}."
    if choice.rank < answer.evidence.width:
        return f"Whether its rank is enough is unknown: {need_words(rank)}."
    return f"That is the largest rank of width {choice.rank}; whether it is enough is unknown."
