"""Reduce trained attention to the rank it uses, and measure what that costs."""

from headwise.reduction.evaluation import Score, Speed
from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.layers import Damage, ReducedLayer, reduce
from headwise.reduction.planning import Budget, Cut
from headwise.reduction.reducing import CURVE, Settings, reduce_model
from headwise.reduction.report import reduction_page, reduction_rows
from headwise.reduction.result import CurvePoint, Reduction
from headwise.reduction.saving import load, save_model
from headwise.reduction.stored import keep_reduction

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
    "Settings",
    "Speed",
    "best_factors",
    "keep_reduction",
    "load",
    "reduce",
    "reduce_model",
    "reduction_page",
    "reduction_rows",
    "save_model",
]
