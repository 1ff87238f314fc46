"""What the papers prove, and the finite law.

What needs numpy alone is imported here; what simulates needs torch, and loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwise.theory.fluctuation import corrected_law
from headwise.theory.harmonics import Values, error_lower_bound, heads_needed
from headwise.theory.ready import Prediction, ready_ratio
from headwise.theory.scaling import Scaling, saturation_row, scaling
from headwise.theory.under_mask import barrier_ratio, critical_head_dim

if TYPE_CHECKING:
    from headwise.theory.law import finite_law
    from headwise.theory.montecarlo import simulate_ratio, simulate_to
    from headwise.theory.plateau import concatenated_ratio, plateau_ratio
    from headwise.theory.prediction import predict_ratio
    from headwise.theory.softening import SoftmaxPrediction, softmax_ratio

_WITH_TORCH = {
    "SoftmaxPrediction": "softening",
    "concatenated_ratio": "plateau",
    "finite_law": "law",
    "plateau_ratio": "plateau",
    "predict_ratio": "prediction",
    "simulate_ratio": "montecarlo",
    "simulate_to": "montecarlo",
    "softmax_ratio": "softening",
}

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
    "ready_ratio",
    "saturation_row",
    "scaling",
    "simulate_ratio",
    "simulate_to",
    "softmax_ratio",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'headwise.theory' has no attribute {name!r}")
    return getattr(import_module(f"headwise.theory.{_WITH_TORCH[name]}"), name)
