"""What rank do common ways of counting report for the same heads, in common precisions?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import default_temperature, logits
from headwise.runs import Row, Spec, device
from headwise.shapes import Float, Int
from headwise.spectra import Counts, LogWeights, count

#: Maps matrices and ε to one rank for each matrix.
Ranks = Callable[[Tensor, float], Tensor]

_WIDE = {"float64": torch.float64, "float32": torch.float32}


@dataclass(frozen=True)
class Way:
    """A way to count a rank: how attention is stored, the method, and its precision."""

    stored: str
    method: str
    arithmetic: str
    ranks: Ranks


class CountByMethod(Spec, frozen=True):
    """Rank over length of independent random heads, one row for each way of counting.

    The heads are those of the rank paper: inputs and weights N(0, 1), T = √d_h unless
    ``temperature`` is given. ``float32`` is attention computed in float32 from rounded queries and
    keys. ``bfloat16`` and ``float16`` are the float64 matrix, rounded; torch cannot decompose them,
    so they are widened first. headwise counts twice: from the float64 logits (the truth, with a
    certificate) and from the float32 copy (an interval).

    >>> rows = CountByMethod(head_dim=4, tokens=20, width=32, heads=3).ask()
    >>> rows[0]["method"], rows[0]["low"] == rows[0]["high"], rows[0]["agreeing"]
    ('headwise', True, 3)
    """

    kind: Literal["count_by_method"] = "count_by_method"
    revision: Literal[1] = 1
    head_dim: PositiveInt
    width: PositiveInt = 384
    tokens: PositiveInt = 200
    heads: PositiveInt = 16
    temperature: PositiveFloat | None = None
    epsilon: PositiveFloat = 1e-8
    seed: int = 0

    def ask(self) -> list[Row]:
        """Return one row per way; ``agreeing`` counts the heads where it fits the truth."""
        source, copies = self._matrices()
        truth = count(source, self.epsilon)
        rows = [_row("float64", "headwise", "float64") | _statistics(truth, truth, self.tokens)]
        for way in WAYS:
            ranks = way.ranks(copies[way.stored].to(_WIDE[way.arithmetic]), self.epsilon)
            named = _row(way.stored, way.method, way.arithmetic)
            rows.append(named | _statistics(_sure(ranks), truth, self.tokens))
        of_copy = count(copies["float32"], self.epsilon)
        named = _row("float32", "headwise", "float64")
        return [*rows, named | _statistics(of_copy, truth, self.tokens)]

    def _matrices(self) -> tuple[LogWeights, dict[str, Tensor]]:
        drawn = gaussian_heads(
            self.heads, self.tokens, width=self.width, head_dim=self.head_dim, seed=self.seed
        )
        queries, keys = (part.to(device()) for part in drawn)
        source = logits(queries, keys, temperature=self.temperature)
        exact = torch.softmax(source.values, dim=-1)
        heat = self.temperature or default_temperature(self.head_dim)
        single = queries.float() @ keys.float().mT / heat
        return source, {
            "float64": exact,
            "float32": torch.softmax(single, dim=-1),
            "bfloat16": exact.bfloat16(),
            "float16": exact.half(),
        }


def svd_ranks(matrices: Float[Tensor, "heads n n"], epsilon: float) -> Int[Tensor, " heads"]:
    """Count singular values of at least ε by a plain decomposition."""
    return (torch.linalg.svdvals(matrices) >= epsilon).sum(-1)


def gram_ranks(matrices: Float[Tensor, "heads n n"], epsilon: float) -> Int[Tensor, " heads"]:
    """Count square roots of eigenvalues of AᵀA that are at least ε."""
    squares = torch.linalg.eigvalsh(matrices.mT @ matrices)
    return (squares.clamp(min=0).sqrt() >= epsilon).sum(-1)


def _torch_default(matrices: Tensor, _: float) -> Tensor:
    return torch.linalg.matrix_rank(matrices)


def _numpy_default(matrices: Tensor, _: float) -> Tensor:
    return torch.as_tensor(np.linalg.matrix_rank(matrices.cpu().numpy()))


#: The ways of counting other than headwise's own.
WAYS = (
    Way("float64", "svd at ε", "float64", svd_ranks),
    Way("float64", "√eig(AᵀA) at ε", "float64", gram_ranks),
    Way("float64", "numpy's default", "float64", _numpy_default),
    Way("float64", "torch's default", "float64", _torch_default),
    Way("float32", "svd at ε", "float32", svd_ranks),
    Way("float32", "svd at ε", "float64", svd_ranks),
    Way("float32", "numpy's default", "float32", _numpy_default),
    Way("float32", "torch's default", "float32", _torch_default),
    Way("bfloat16", "svd at ε", "float32", svd_ranks),
    Way("bfloat16", "svd at ε", "float64", svd_ranks),
    Way("bfloat16", "torch's default", "float32", _torch_default),
    Way("float16", "svd at ε", "float32", svd_ranks),
    Way("float16", "svd at ε", "float64", svd_ranks),
    Way("float16", "torch's default", "float32", _torch_default),
)


def _row(stored: str, method: str, arithmetic: str) -> Row:
    return {"stored": stored, "method": method, "arithmetic": arithmetic}


def _sure(ranks: Tensor) -> Counts:
    """Return ranks as intervals of one number."""
    return Counts(ranks, ranks, torch.zeros(ranks.shape, dtype=torch.float64), ())


def _statistics(counts: Counts, truth: Counts, tokens: int) -> Row:
    """Return the mean ends of the interval, their spread, and how many heads are right."""
    low, high = (part.double().cpu() / tokens for part in (counts.low, counts.high))
    middle = (low + high) / 2
    heads = middle.numel()
    spread = float(middle.std(correction=0))
    met = (counts.low.cpu() <= truth.high.cpu()) & (truth.low.cpu() <= counts.high.cpu())
    return {
        "mean": float(middle.mean()),
        "std": spread,
        "count": heads,
        "stderr": spread / math.sqrt(max(heads - 1, 1)),
        "low": float(low.mean()),
        "high": float(high.mean()),
        "undecided": int((low != high).sum()),
        "agreeing": int(met.sum()),
    }
