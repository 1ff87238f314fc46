"""The comparison behind ``headwise demo``: the same matrix, three dtypes, five questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.attention import gaussian_heads, logits
from headwise.cli.console import dtype_name, print_json, screen
from headwise.cli.sketch import sketch
from headwise.spectra import PAPER_TOLERANCE, Certificate, LogWeights, count

WIDTH = 384
DTYPES = (torch.float64, torch.float32, torch.bfloat16)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One head, and what each way of asking says of its attention matrix in each dtype."""

    tokens: int
    head_dim: int
    seed: int
    matrix: Tensor
    from_logits: Certificate
    certified: list[Certificate]
    answers: dict[str, list[int]]


def compared(tokens: int, head_dim: int, seed: int) -> Comparison:
    """Draw the head, round its attention matrix to each dtype, ask everyone."""
    queries, keys = gaussian_heads(1, tokens, width=WIDTH, head_dim=head_dim, seed=seed)
    source = logits(queries[0], keys[0])
    matrix = torch.softmax(source.values, dim=-1)
    copies = [matrix.to(dtype) for dtype in DTYPES]
    return Comparison(
        tokens,
        head_dim,
        seed,
        matrix,
        _certified(source),
        [_certified(copy) for copy in copies],
        {asked: [ask(copy) for copy in copies] for asked, ask in _ASKED.items()},
    )


def _certified(source: Tensor | LogWeights) -> Certificate:
    return count(source).item()


def _computable(matrix: Tensor) -> Tensor:
    """numpy and torch decompose no bfloat16: its numbers are handed to them as float32."""
    return matrix.float() if matrix.dtype == torch.bfloat16 else matrix


_ASKED: dict[str, Callable[[Tensor], int]] = {
    "numpy.linalg.matrix_rank(A)": lambda a: int(np.linalg.matrix_rank(_computable(a).numpy())),
    "torch.linalg.matrix_rank(A)": lambda a: int(torch.linalg.matrix_rank(_computable(a))),
    "torch.linalg.matrix_rank(A, atol=1e-8)": lambda a: int(
        torch.linalg.matrix_rank(_computable(a), atol=1e-8)
    ),
}


def as_object(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON."""
    names = [dtype_name(dtype) for dtype in DTYPES]
    intervals = [{"low": count.low, "high": count.high} for count in found.certified]
    return {
        "tokens": found.tokens,
        "width": WIDTH,
        "head_dim": found.head_dim,
        "seed": found.seed,
        "headwise_from_logits": {"low": found.from_logits.low, "high": found.from_logits.high},
        "headwise": dict(zip(names, intervals, strict=True)),
        **{asked: dict(zip(names, ranks, strict=True)) for asked, ranks in found.answers.items()},
    }


def report(found: Comparison, as_json: bool) -> None:
    """Print the comparison, for machines or for a newcomer."""
    if as_json:
        print_json(as_object(found))
    else:
        _show(found)


def _show(found: Comparison) -> None:
    out = screen()
    out.print("What is the rank of this attention matrix?\n", style="bold")
    out.print(
        f"A = softmax(Q Kᵀ / √{found.head_dim}) of one random head: {found.tokens} tokens, "
        f"width {WIDTH}, head dimension {found.head_dim}, every weight and input drawn from "
        f"N(0, 1), seed {found.seed}. Its rank is the number of singular values of at least 1e-8."
    )
    out.print(_table(found))
    out.print(
        f"The rank is {found.from_logits} of {found.tokens}: headwise counts it "
        "from the float64 logits, with a certificate. The others differ because float32 leaves "
        "noise above 1e-8 where the singular values of A are far smaller, and because the "
        "default tolerances of numpy and torch ask another question. Of a rounded copy, "
        "headwise gives the interval that the rounding leaves open.\n"
    )
    out.print("Singular values of A from the largest to the smallest:")
    out.print(_spectra(found.matrix))


def _spectra(matrix: Tensor) -> str:
    single = torch.linalg.svdvals(matrix.float()).tolist()
    double = torch.linalg.svdvals(matrix).tolist()
    curves = {"○": ("computed in float32", single), "●": ("in float64", double)}
    return sketch(curves, level=PAPER_TOLERANCE.epsilon)


def _table(found: Comparison) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("asked of A, stored as")
    for dtype in DTYPES:
        table.add_column(dtype_name(dtype), justify="right")
    for asked, ranks in found.answers.items():
        table.add_row(asked, *map(str, ranks))
    table.add_row("headwise rank A", *map(str, found.certified), style="bold")
    return table
