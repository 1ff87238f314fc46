"""headwise demo: one attention matrix, and what five ways of asking say of its rank."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    seed: Annotated[int, typer.Option(help="Which random head.")] = 0,
    tokens: Annotated[int, typer.Option(min=2, max=2000, help="Rows of the matrix.")] = 200,
    head_dim: Annotated[int, typer.Option(min=1, max=4096, help="Head dimension.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Compare numpy, torch and headwise on one attention matrix.

    The head is random as in the rank paper: width 384, every weight and input N(0, 1).
    """
    from headwise.cli import demo_report

    demo_report.report(demo_report.compared(tokens, head_dim, seed), as_json)
