"""Heads and ranks advised before training, from tokens, from numbers or from a config.

The rule that turns what was measured into a rank is one small file, ``rule``.
"""

from headwise.advice.advisor import advise, advise_config, advise_numbers
from headwise.advice.evidence import Evidence, TokenStatistics
from headwise.advice.export import exported
from headwise.advice.question import Budget, Constraints
from headwise.advice.result import Advice, Choice

__all__ = [
    "Advice",
    "Budget",
    "Choice",
    "Constraints",
    "Evidence",
    "TokenStatistics",
    "advise",
    "advise_config",
    "advise_numbers",
    "exported",
]
