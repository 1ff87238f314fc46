"""Advise heads and ranks before training, from data, from numbers or from a config.

question → tokens → curves → rule → geometries → answer → words → render. The rule that turns
measurements into a rank is ``rule``; the evidence that it helps is ``judged``.
"""

from headwise.advice.advice import Advice
from headwise.advice.advisor import advise
from headwise.advice.answer import Choice, Finding
from headwise.advice.evidence import Evidence
from headwise.advice.tokens.statistics import TokenStatistics

__all__ = ["Advice", "Choice", "Evidence", "Finding", "TokenStatistics", "advise"]
