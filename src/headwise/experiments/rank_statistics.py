"""Summarise many certified counts in one row; the standard error allows for correlation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headwise.runs import Row
from headwise.shapes import Float
from headwise.spectra import Counts


@dataclass(eq=False)
class RankStatistics:
    """Collects the counts of heads × batch matrices of the same size."""

    columns: int
    _ratios: list[Tensor] = field(default_factory=list)
    _undecided: int = 0
    _methods: Counter[str] = field(default_factory=Counter)

    def add(self, counts: Counts) -> None:
        """Add counts of shape (heads, batch)."""
        low, high = counts.low.double().cpu(), counts.high.double().cpu()
        self._ratios.append((low + high) / 2 / self.columns)
        self._undecided += int((low != high).sum())
        self._methods.update(counts.methods)

    def row(self) -> Row:
        """Return rank over columns: mean, standard deviation, standard error, and the methods."""
        ratios = torch.cat(self._ratios)
        return {
            "mean": float(ratios.mean()),
            "std": float(ratios.std(correction=0)),
            "count": ratios.numel(),
            "stderr": clustered_error(ratios),
            "undecided": self._undecided,
            "methods": dict(sorted(self._methods.items())),
        }


def clustered_error(values: Float[Tensor, "heads batch"]) -> float:
    """Return the standard error of the mean if rows share weights and columns share inputs.

    Matrices of one head share its weights and those of one batch item its tokens, so they are
    not independent. The variances of both kinds of mean are added. If nothing is in fact shared,
    this counts the noise about twice, and never too little. With one row or one column only the
    other is used.
    """
    total = 0.0
    for means in (values.mean(1), values.mean(0)):
        if means.numel() > 1:
            total += float(means.var()) / means.numel()
    return math.sqrt(total)
