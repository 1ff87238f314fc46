"""Heads and ranks of a layer, as numbers: see ``headwise.geometry``, which needs no torch."""

from headwise.geometry import HeadGeometry, LatentGeometry, divisors

__all__ = ["HeadGeometry", "LatentGeometry", "divisors"]
