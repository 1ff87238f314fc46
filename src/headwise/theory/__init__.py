"""What the papers prove, and the law of random heads.

Importing this package needs numpy and scipy alone; simulations import torch on first use.
"""

from headwise.theory.bound_curve import Bound, bound
from headwise.theory.expected import Prediction, expected_rank
from headwise.theory.harmonic_bound import Values
from headwise.theory.law_curve import Law, law

__all__ = ["Bound", "Law", "Prediction", "Values", "bound", "expected_rank", "law"]
