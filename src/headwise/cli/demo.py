"""headwise demo: one attention matrix, and what five ways of asking say of its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from headwise.cli.options import AsJson, option, whole_from

if TYPE_CHECKING:
    from rich.table import Table
    from torch import Tensor

    from headwise.spectra import LogWeights

WIDTH = 384
DTYPES = ("float64", "float32", "bfloat16")

#: Singular values below this are drawn as this.
LEAST = 1e-16


def demo(
    seed: Annotated[int, option("--seed", "Which random head.", whole_from(0))] = 0,
    tokens: Annotated[int, option("--tokens", "Rows of the matrix.", whole_from(2, 2000))] = 200,
    head_dim: Annotated[int, option("--head-dim", "Head dimension.", whole_from(1, 4096))] = 64,
    as_json: AsJson = False,
) -> None:
    """Compare numpy, torch and headwise on one attention matrix.

    The head is random as in the rank paper: width 384, every weight and input N(0, 1).
    """
    from headwise.attention import gaussian_heads, logits
    from headwise.cli.console import print_json

    queries, keys = gaussian_heads(1, tokens, width=WIDTH, head_dim=head_dim, seed=seed)
    source = logits(queries[0], keys[0])
    matrix = source.values.softmax(-1)
    asked = {"tokens": tokens, "width": WIDTH, "head_dim": head_dim, "seed": seed}
    found = asked | _answers(source, matrix)
    if as_json:
        print_json(found)
    else:
        _show(found, matrix)


def _answers(source: LogWeights, matrix: Tensor) -> dict[str, Any]:
    """Ask everyone for the rank of the matrix, stored in each dtype."""
    import torch
    from numpy.linalg import matrix_rank as numpy_rank
    from torch.linalg import matrix_rank as torch_rank

    from headwise.spectra import count

    def interval(given: Tensor | LogWeights) -> dict[str, int]:
        certified = count(given).item()
        return {"low": certified.low, "high": certified.high}

    stored = {name: matrix.to(getattr(torch, name)) for name in DTYPES}
    # numpy and torch decompose no bfloat16: they get its numbers as float32.
    plain = stored | {"bfloat16": stored["bfloat16"].float()}
    return {
        "headwise_from_logits": interval(source),
        "headwise": {name: interval(a) for name, a in stored.items()},
        "numpy.linalg.matrix_rank(A)": {n: int(numpy_rank(a.numpy())) for n, a in plain.items()},
        "torch.linalg.matrix_rank(A)": {n: int(torch_rank(a)) for n, a in plain.items()},
        "torch.linalg.matrix_rank(A, atol=1e-8)": {
            name: int(torch_rank(a, atol=1e-8)) for name, a in plain.items()
        },
    }


def _show(found: dict[str, Any], matrix: Tensor) -> None:
    from headwise.cli.console import screen

    out = screen()
    out.print("What is the rank of this attention matrix?\n", style="bold")
    out.print(
        f"A = softmax(Q Kᵀ / √{found['head_dim']}) of one random head: {found['tokens']} tokens, "
        f"width {WIDTH}, head dimension {found['head_dim']}, every weight and input drawn from "
        f"N(0, 1), seed {found['seed']}. Its rank is the number of singular values of at least "
        "1e-8."
    )
    out.print(_table(found))
    out.print(
        f"The rank is {_words(found['headwise_from_logits'])} of {found['tokens']}: headwise "
        "counts it from the float64 logits, with a certificate. The others differ because float32 "
        "leaves noise above 1e-8 where the singular values of A are far smaller, and because "
        "numpy and torch use a tolerance relative to the largest singular value by default. For a "
        "rounded copy, headwise returns every rank that is consistent with the rounding.\n"
    )
    out.print(_spectra(matrix))


def _table(found: dict[str, Any]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("asked of A, stored as")
    for dtype in DTYPES:
        table.add_column(dtype, justify="right")
    for asked, ranks in found.items():
        if "matrix_rank" in asked:
            table.add_row(asked, *map(str, ranks.values()))
    table.add_row("headwise rank A", *map(_words, found["headwise"].values()), style="bold")
    return table


def _words(interval: dict[str, int]) -> str:
    low, high = interval["low"], interval["high"]
    return str(low) if low == high else f"{low} to {high}"


def _spectra(matrix: Tensor) -> str:
    import torch

    from headwise.report import Curve, Line, Panel, terminal_plot

    def curve(name: str, given: Tensor) -> Curve:
        values = torch.linalg.svdvals(given).clamp(min=LEAST).tolist()
        return Curve(name, Line(tuple(range(1, len(values) + 1)), tuple(values)), style="rings")

    n = len(matrix)
    curves = curve("in float64", matrix), curve("computed in float32", matrix.float())
    axes = ("Singular values of A", "number, from the largest to the smallest", "")
    ticks = tuple(sorted({1, n // 4, n // 2, 3 * n // 4, n} - {0}))
    levels = (("1e-08", 1e-8),)
    return terminal_plot(Panel(*axes, curves, y_scale="log", x_ticks=ticks, levels=levels))
