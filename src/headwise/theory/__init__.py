"""What the papers prove, and the finite law."""

from headwise.theory.fluctuation import corrected_law
from headwise.theory.harmonics import Values, error_lower_bound, heads_needed
from headwise.theory.law import barrier_ratio, critical_head_dim, finite_law
from headwise.theory.montecarlo import simulate_ratio, simulate_to
from headwise.theory.plateau import concatenated_ratio, plateau_ratio
from headwise.theory.prediction import Prediction, predict_ratio
from headwise.theory.scaling import Scaling, saturation_row, scaling
from headwise.theory.softening import SoftmaxPrediction, softmax_ratio

__all__ = [
    "Prediction",
    "Scaling",
    "SoftmaxPrediction",
    "Values",
    "barrier_ratio",
    "concatenated_ratio",
    "corrected_law",
    "critical_head_dim",
    "error_lower_bound",
    "finite_law",
    "heads_needed",
    "plateau_ratio",
    "predict_ratio",
    "saturation_row",
    "scaling",
    "simulate_ratio",
    "simulate_to",
    "softmax_ratio",
]
