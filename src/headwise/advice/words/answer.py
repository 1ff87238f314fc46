"""The answer as sentences: headline, reasons, caveat, cells and notes of tables."""

from __future__ import annotations

from collections.abc import Mapping

from headwise.advice.answer import Answer, Choice
from headwise.advice.geometries.heads import NEGLIGIBLE, USUAL_HEAD_DIM
from headwise.advice.rule import MARGIN, SLACK, RankChoice, whole_dimension
from headwise.advice.words.finding import sentence
from headwise.advice.words.terms import (
    TASK_FROM,
    counted,
    enough_words,
    geometry_words,
    need_words,
    percent,
)

CLOSING = (
    "This measures the first layer before training and promises nothing about the trained model. "
    "Judged tasks have widths of 32 to 256 and at most 6 layers: whether width, depth or length "
    "move the best rank is not known. Train two or three of these geometries before you rely on "
    "one: headwise trial."
)

NO_DATA = (
    "No data was given, so this uses a law for random heads, which asks for more rank than most "
    "real tokens do. Pass data to have it measured."
)

START = {"model": "default initialisation", "paper": "N(0, 1) weights", "law": "law"}

ROLES: dict[str, str] = {
    "advised": "The rank that is enough for these tokens, in queries, keys and values.",
    "whole values": "That rank for queries and keys, with wider values: for layers that must pass "
    "on whole tokens.",
    "fewer heads": "That rank with fewer heads: cheaper. On images it scored 1 to 4 points lower.",
    "present heads": "That rank with the model's number of heads: cheaper than more heads. On "
    "images, fewer heads scored 1 to 4 points lower.",
    "half rank": "Half that rank: try it if training shows that less is enough.",
    "lookup": "Enough rank to look up single tokens exactly.",
    "limited rank": "The largest rank below that which the limits allow.",
    "usual": f"The usual choice: head_dim {USUAL_HEAD_DIM}, heads = width / {USUAL_HEAD_DIM}.",
    "largest": "The largest rank that was tried.",
    "present": "The model as it is.",
}

#: Names of rows that differ from the role.
ROW_NAMES = {"present": "your model", "limited rank": "lower rank", "present heads": "your heads"}

#: Names of findings, for lists; others are named by their code.
LABELS = {
    "decides": "Need",
    "judged part": "Part",
    "judged encoder": "Part",
    "retrieval": "Lookup",
    "mask from": "Mask",
    "mask law": "Mask",
    "law bounds": "Law",
    "wide band": "Band",
    "few tokens": "Tokens",
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
        assumed = " (assumed: the config gives none)" if evidence.assumed_length else ""
        words += f"{evidence.length:,} tokens{assumed}"
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
    words = f"{_verb(answer)} {geometry_words(best.geometry)} at width {best.geometry.width}: "
    words += f"{best.costs.parameters:,} parameters, {_compared(answer)}."
    return words if best.meets or answer.kept else f"{words} {_short_of(answer.rank)}"


def caveat(answer: Answer) -> str:
    """What to know before the answer is believed."""
    return NO_DATA if answer.evidence.statistics is None else CLOSING


def reasons(answer: Answer) -> list[str]:
    """The three reasons that decide: the evidence, the need, and why so many heads."""
    codes = ["evidence", "decides", "heads" if answer.finding("shape") is None else "shape"]
    found = [answer.finding(code) for code in codes]
    return [sentence(one) for one in found if one is not None]


def row_name(answer: Answer, choice: Choice) -> str:
    """What a row of the table is called."""
    if choice.role == "advised" and answer.kept:
        return "predicted rank" if answer.evidence.statistics is None else "measured rank"
    if choice.role == "usual" and choice.geometry != answer.usual.geometry:
        return "usual, fewer"
    return ROW_NAMES.get(choice.role, choice.role)


def choice_words(answer: Answer, choice: Choice) -> str:
    """Why a choice is listed, and what it can do."""
    if not choice.meets:
        return f"{ROLES[choice.role]} {_short_of(answer.rank)}"
    return f"{ROLES[choice.role]} It reaches {percent(choice.plateau_share)} mixing."


def legend(answer: Answer) -> list[str]:
    """What the columns of the table mean, one line each."""
    rank = answer.rank
    enough = f"reaches {1 - SLACK:.0%} mixing"
    if rank.binds == "retrieval" or rank.retrieval_too:
        enough = "can look up single tokens"
    known = rank.binds == "retrieval" or rank.reached
    least = f" ({enough_words(rank)} does)" if known else " (no rank that was tried does)"
    return [
        "rank: head dimension of queries and keys.",
        "mixing: rank of a head's attention matrix before training, in % of its maximum.",
        "lookup: error in picking out one token. 0: exact; ≥ x: at least x, by theory.",
        f"enough: whether the rank {enough}{least}.",
    ]


def notes(answer: Answer) -> list[str]:
    """What the columns of the tables mean, in detail."""
    dimension = whole_dimension(answer.evidence.effective_dimension)
    return [
        "mixing: numerical rank of a head's attention matrix before training, as a share of its "
        "plateau, the value that it tends to for large head dimensions.",
        "lookup: lower bound on the mean squared error of finding the nearer of two tokens "
        f"in {dimension} dimensions (heads paper). 0: one head can be exact. Training took a rank "
        f"of {MARGIN} times the effective dimension to get there; below that, ≥ 0 is shown.",
        f"FLOPs per token: at {answer.evidence.context:,} tokens of context. KV bytes: per token, "
        "in 16-bit numbers.",
    ]


def met_words(rank: RankChoice, choice: Choice) -> str:
    """Whether a choice has enough rank, as a cell of a table."""
    if choice.meets:
        return "yes"
    return "no" if rank.binds == "retrieval" or rank.reached else "unknown"


def lookup_words(rank: RankChoice, choice: Choice) -> str:
    """The lookup error of a choice, as a cell of a table."""
    if choice.exact and choice.rank >= rank.retrieval:
        return "0"
    return f"≥ {choice.floor:.3f}" if choice.floor >= NEGLIGIBLE else "≥ 0"


def assumed_words(sizes: Mapping[str, int]) -> str:
    """Sizes of an export that are defaults."""
    return "assumed, change them to yours: " + ", ".join(f"{k} {v}" for k, v in sizes.items())


def _verb(answer: Answer) -> str:
    if answer.best.role == "present":
        return "Keep"
    return "Start with" if answer.kept else "Use"


def _compared(answer: Answer) -> str:
    best, usual = answer.best, answer.usual
    if best.geometry == usual.geometry:
        return f"the usual head_dim of {usual.rank}"
    share = best.against_usual["parameters"]
    many = "as many as" if share == 1 else f"{share:.0%} of"
    words = f"{many} the usual {geometry_words(usual.geometry)}"
    if best.against_present is None or best.role == "present":
        return words
    return f"{words}, {best.against_present['parameters']:.0%} of your model's"


def _short_of(rank: RankChoice) -> str:
    return f"Its rank is too low: {need_words(rank)}."
