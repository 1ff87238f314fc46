"""Reduce trained attention to the rank it uses, and measure what that costs."""

from headwise.reduction.evaluation import Score, Speed
from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.layers import Damage, ReducedLayer, reduce_layer
from headwise.reduction.planning import Cut
from headwise.reduction.reducing import reduce
from headwise.reduction.report import rank_table, reduction_rows, reduction_words
from headwise.reduction.result import CurvePoint, Reduction
from headwise.reduction.saving import load, save_model
from headwise.reduction.stored import keep_reduction

__all__ = [
    "CurvePoint",
    "Cut",
    "Damage",
    "Factors",
    "ReducedLayer",
    "Reduction",
    "Score",
    "Speed",
    "best_factors",
    "keep_reduction",
    "load",
    "rank_table",
    "reduce",
    "reduce_layer",
    "reduction_rows",
    "reduction_words",
    "save_model",
]
