"""The rank of one attention matrix by numpy, torch and headwise, stored in three dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from numpy.linalg import matrix_rank as numpy_rank
from torch import Tensor
from torch.linalg import matrix_rank as torch_rank

from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import logits
from headwise.checks import whole
from headwise.report import Curve, Line, Panel, draw
from headwise.report.results import Drawable, Tabular
from headwise.spectra import Certificate, count

#: Width of the embedding, as in the rank paper.
WIDTH = 384

#: Singular values below this are drawn as this.
LEAST = 1e-16

#: How the matrix is stored.
DTYPES = ("float64", "float32", "bfloat16")

#: The calls that are compared with headwise.
CALLS: dict[str, Callable[[Tensor], Any]] = {
    "numpy.linalg.matrix_rank(A)": lambda a: numpy_rank(a.numpy()),
    "torch.linalg.matrix_rank(A)": torch_rank,
    "torch.linalg.matrix_rank(A, atol=1e-8)": lambda a: torch_rank(a, atol=1e-8),
}


@dataclass(frozen=True, eq=False, repr=False)
class RankComparison(Tabular, Drawable):
    """The rank of one attention matrix by numpy, torch and headwise.

    ``to_frame`` has a row for each call and dtype. ``plot`` draws the singular values, computed in
    float64 and in float32.

    Attributes:
        tokens: Rows and columns of the matrix.
        head_dim: Head dimension.
        seed: Seed of the random head.
        matrix: The attention matrix, in float64.
        from_logits: The rank by headwise, from the logits.
        certified: The rank by headwise, from the matrix in each dtype.
        libraries: The rank by each other call, from the matrix in each dtype.
        width: Width of the embedding.

    Example:
        >>> compare_ranks(tokens=40, head_dim=8)
        RankComparison(40 tokens, head dimension 8: rank 20)
    """

    tokens: int
    head_dim: int
    seed: int
    matrix: Tensor
    from_logits: Certificate
    certified: dict[str, Certificate]
    libraries: dict[str, dict[str, int]]
    width: int = WIDTH

    def __repr__(self) -> str:
        sizes = f"{self.tokens} tokens, head dimension {self.head_dim}"
        return f"RankComparison({sizes}: rank {self.from_logits})"

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "tokens": self.tokens,
            "width": self.width,
            "head_dim": self.head_dim,
            "seed": self.seed,
            "headwise_from_logits": _interval(self.from_logits),
            "headwise": {name: _interval(found) for name, found in self.certified.items()},
            **self.libraries,
        }

    def panel(self) -> Panel:
        """Return the singular values as float64 and float32 compute them, as a plot."""
        n = self.tokens
        curves = (
            _curve("in float64", self.matrix),
            _curve("computed in float32", self.matrix.float()),
        )
        axes = ("Singular values of A", "number, from the largest to the smallest", "")
        ticks = tuple(sorted({1, n // 4, n // 2, 3 * n // 4, n} - {0}))
        levels = (("1e-08", 1e-8),)
        return Panel(*axes, curves, y_scale="log", x_ticks=ticks, levels=levels)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for call, ranks in self.libraries.items():
            for dtype, rank in ranks.items():
                yield {"call": call, "dtype": dtype, "low": rank, "high": rank}
        for dtype, found in self.certified.items():
            yield {"call": "headwise", "dtype": dtype, **_interval(found)}

    def _figure(self) -> Any:
        return draw([self.panel()])


def _curve(name: str, matrix: Tensor) -> Curve:
    values = torch.linalg.svdvals(matrix).clamp(min=LEAST).tolist()
    return Curve(name, Line(tuple(range(1, len(values) + 1)), tuple(values)), style="rings")


def compare_ranks(tokens: int = 200, head_dim: int = 64, seed: int = 0) -> RankComparison:
    """Ask numpy, torch and headwise for the rank of one attention matrix.

    The head is random as in the rank paper: width 384, every weight and input N(0, 1).

    Args:
        tokens: Rows and columns of the matrix, 2 to 2,000.
        head_dim: Head dimension, 1 to 4,096.
        seed: Which random head.

    Returns:
        The rank by each library, for the matrix in float64, float32 and bfloat16.

    Raises:
        ParameterError: If a parameter is out of range.

    Example:
        >>> found = compare_ranks(tokens=40, head_dim=8)
        >>> found.libraries["torch.linalg.matrix_rank(A, atol=1e-8)"]["float32"]
        27
    """
    tokens, head_dim = whole("tokens", tokens, 2, 2000), whole("head_dim", head_dim, 1, 4096)
    seed = whole("seed", seed, 0)
    queries, keys = gaussian_heads(1, tokens, width=WIDTH, head_dim=head_dim, seed=seed)
    source = logits(queries[0], keys[0])
    matrix = source.values.softmax(-1)
    stored = {name: matrix.to(getattr(torch, name)) for name in DTYPES}
    # numpy and torch decompose no bfloat16: they get its numbers as float32.
    plain = stored | {"bfloat16": stored["bfloat16"].float()}
    return RankComparison(
        tokens=tokens,
        head_dim=head_dim,
        seed=seed,
        matrix=matrix,
        from_logits=count(source).item(),
        certified={name: count(a).item() for name, a in stored.items()},
        libraries={
            name: {dtype: int(call(a)) for dtype, a in plain.items()}
            for name, call in CALLS.items()
        },
    )


def _interval(found: Certificate) -> dict[str, int]:
    return {"low": found.low, "high": found.high}
