"""headwise demo: one attention matrix, and what five ways of asking say of its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from headwise.cli.options import AsJson, option, whole_from

if TYPE_CHECKING:
    from rich.table import Table

    from headwise.attention import RankComparison


def demo(
    seed: Annotated[int, option("--seed", "Which random head.", whole_from(0))] = 0,
    tokens: Annotated[int, option("--tokens", "Rows of the matrix.", whole_from(2, 2000))] = 200,
    head_dim: Annotated[int, option("--head-dim", "Head dimension.", whole_from(1, 4096))] = 64,
    as_json: AsJson = False,
) -> None:
    """Compare numpy, torch and headwise on one attention matrix.

    The head is random as in the rank paper: width 384, every weight and input N(0, 1).
    """
    from headwise.attention import compare_ranks
    from headwise.cli.console import print_json

    found = compare_ranks(tokens, head_dim, seed)
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)


def _show(found: RankComparison) -> None:
    from headwise.cli.console import screen
    from headwise.report import terminal_plot

    out = screen()
    out.print("What is the rank of this attention matrix?\n", style="bold")
    out.print(
        f"A = softmax(Q Kᵀ / √{found.head_dim}) of one random head: {found.tokens} tokens, "
        f"width {found.width}, head dimension {found.head_dim}, every weight and input drawn from "
        f"N(0, 1), seed {found.seed}. Its rank is the number of singular values of at least "
        "1e-8."
    )
    out.print(_table(found))
    out.print(
        f"The rank is {found.from_logits} of {found.tokens}: headwise "
        "counts it from the float64 logits, with a certificate. The others differ because float32 "
        "leaves noise above 1e-8 where the singular values of A are far smaller, and because "
        "numpy and torch use a tolerance relative to the largest singular value by default. For a "
        "rounded copy, headwise returns every rank that is consistent with the rounding.\n"
    )
    out.print(terminal_plot(found.panel()))


def _table(found: RankComparison) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("asked of A, stored as")
    for dtype in found.certified:
        table.add_column(dtype, justify="right")
    for asked, ranks in found.libraries.items():
        table.add_row(asked, *map(str, ranks.values()))
    table.add_row("headwise rank A", *map(str, found.certified.values()), style="bold")
    return table
