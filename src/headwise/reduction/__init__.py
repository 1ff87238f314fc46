"""Reduce trained attention to the rank it uses, and measure what that costs."""

from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.layers import Damage, ReducedLayer, reduce

__all__ = ["Damage", "Factors", "ReducedLayer", "best_factors", "reduce"]
