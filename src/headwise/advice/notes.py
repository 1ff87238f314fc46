"""What the columns of the tables mean, for the lines below them."""

from __future__ import annotations

from headwise.advice.result import Advice
from headwise.advice.retrieval import floor_words


def notes(advice: Advice) -> tuple[str, ...]:
    """Every line below a table of geometries with their costs.

    >>> from headwise.advice.advisor import advise_numbers
    >>> notes(advise_numbers(512, 768))[-1]
    'FLOPs per token: at 512 tokens of context.'
    """
    return *geometry_notes(advice), cost_note(advice)


def geometry_notes(advice: Advice) -> tuple[str, ...]:
    """What the columns about what a geometry reaches mean."""
    return (floor_words(advice.evidence.effective_dimension),)


def cost_note(advice: Advice) -> str:
    """At which length FLOPs are taken: no other cost depends on it."""
    return f"FLOPs per token: at {advice.evidence.context:,} tokens of context."
