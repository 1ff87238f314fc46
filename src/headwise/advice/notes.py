"""What the columns of the tables mean, for the lines below them."""

from __future__ import annotations

from headwise.advice.evidence import Evidence
from headwise.advice.result import Advice, lookup_too
from headwise.advice.retrieval import floor_words, lookup_limit
from headwise.advice.rule import MARGIN, SLACK

WHOLE_VALUES = (
    "Whole values: values as wide as the layer, for when it must also pass on whole tokens."
)


def notes(advice: Advice) -> tuple[str, ...]:
    """Every line below a table of geometries with their costs.

    >>> from headwise.advice.advisor import advise_numbers
    >>> notes(advise_numbers(512, 768))[-1]
    'FLOPs per token: at 512 tokens of context.'
    """
    return *geometry_notes(advice), cost_note(advice)


def geometry_notes(advice: Advice) -> tuple[str, ...]:
    """What the columns about what a geometry reaches mean, and a name that needs a word."""
    whole = any(choice.role == "whole values" for choice in advice.choices)
    return (
        need_note(advice),
        *([WHOLE_VALUES] if whole else []),
        floor_words(advice.evidence.effective_dimension),
    )


def need_note(advice: Advice) -> str:
    """The need that decides, in numbers: what "meets need" is held against.

    >>> from headwise.advice.advisor import advise_numbers
    >>> need_note(advise_numbers(512, 768))
    'Need: 90% of the plateau (mixing), which rank 96 is the first looked at to reach.'
    """
    rank = advice.rank
    if rank.binds == "retrieval":
        return f"Need: rank {rank.retrieval} (retrieval), {_lookup_words(advice.evidence)}."
    if rank.reached:
        band = " at the lower end of the band" if advice.curve.seeds else ""
        lookup = f", and rank {rank.retrieval} (retrieval)" if lookup_too(rank) else ""
        return (
            f"Need: {1 - SLACK:.0%} of the plateau{band} (mixing), which rank {rank.mixing} is the "
            f"first looked at to reach{lookup}."
        )
    return (
        f"Need: above rank {rank.mixing} (mixing), the largest looked at, where the rank of a head "
        "still rises; so nothing is known to meet it."
    )


def _lookup_words(evidence: Evidence) -> str:
    if evidence.statistics is None:
        return "all dimensions of the width, since nothing is known of the tokens"
    dimension, limit = evidence.statistics.effective_dimension, lookup_limit(evidence)
    words = f"{MARGIN} times the effective dimension of {dimension:.1f}"
    return f"{words}, at most {limit}" if limit else words


def cost_note(advice: Advice) -> str:
    """At which length FLOPs are taken: no other cost depends on it."""
    return f"FLOPs per token: at {advice.evidence.context:,} tokens of context."
