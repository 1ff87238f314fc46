"""Reduce trained attention to the rank it uses, and measure what that costs."""

from headwise.reduction.evaluation import Score, Speed
from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.layers import Damage, ReducedLayer, reduce
from headwise.reduction.planning import Budget, Cut
from headwise.reduction.reducing import CURVE, CurvePoint, Reduction, reduce_model
from headwise.reduction.report import reduction_page, reduction_rows
from headwise.reduction.saving import load, save_model

__all__ = [
    "CURVE",
    "Budget",
    "CurvePoint",
    "Cut",
    "Damage",
    "Factors",
    "ReducedLayer",
    "Reduction",
    "Score",
    "Speed",
    "best_factors",
    "load",
    "reduce",
    "reduce_model",
    "reduction_page",
    "reduction_rows",
    "save_model",
]
