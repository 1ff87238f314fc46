"""Heads and ranks of a layer: see ``headwise.geometry``, which does not need torch."""

from headwise.geometry import HeadGeometry, LatentGeometry, divisors

__all__ = ["HeadGeometry", "LatentGeometry", "divisors"]
