"""Figure 6, Gaussian part: how far random vectors are from orthonormal."""

from __future__ import annotations

import math

from headwise.experiments.orthonormality import Orthonormality
from headwise.papers.comparison import STANDARD_ERRORS
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.papers.kinds.rank_rows import falls, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import HEAD_DIMS
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

#: Vectors of d_h Gaussian entries, and Gaussian inputs of the model's width times weights.
SOURCES = {"N(0, 1) vectors": None, "keys of N(0, 1) inputs": 384}

#: A cosine above this is not near zero.
SMALL_COSINE = 0.1


def _paper() -> list[Spec]:
    return grid(Orthonormality, {"batch": 128}, width=tuple(SOURCES.values()), head_dim=HEAD_DIMS)


def _miniature() -> list[Spec]:
    sizes = {"tokens": 30, "batch": 8}
    return grid(Orthonormality, sizes, width=tuple(SOURCES.values()), head_dim=(2, 16, 64))


def _present(answers: Answers) -> Presentation:
    curves = [
        rank_curve(
            name,
            pooled_by(answers.rows(width=width), "head_dim"),
            law={
                row["head_dim"]: math.sqrt(row["expected_square"])
                for row in answers.rows(width=width)
            },
        )
        for name, width in SOURCES.items()
    ]
    dims = tuple(answers.values("head_dim"))
    panel = Panel(
        "Gaussian vectors come near to orthonormal",
        "head dimension",
        "distance from orthonormal, ‖C − I‖_F / n²",
        tuple(curves),
        x_scale="log",
        y_scale="log",
        x_ticks=dims,
        law_label="expectation",
    )
    return Presentation(
        panels=(panel,), tables=(_table(answers),), claims=_claims(answers), remarks=(_REMARK,)
    )


def _table(answers: Answers) -> Table:
    rows = tuple(
        (
            name,
            row["head_dim"],
            f"{row['mean']:.3e}",
            f"{row['stderr']:.1e}",
            f"{math.sqrt(row['mean_square']):.3e}",
            f"{math.sqrt(row['expected_square']):.3e}",
            round(_deviation(row), 2),
            round(_root_mean_square_cosine(row), 3),
        )
        for name, width in SOURCES.items()
        for row in answers.rows(width=width)
    )
    columns = (
        "vectors",
        "dimension",
        "‖C − I‖_F / n²",
        "± standard error",
        "root mean square",
        "expected",
        "apart, in standard errors",
        "typical cosine",
    )
    return Table(columns, rows, title="Measured and expected")


def _deviation(row: Row) -> float:
    return (row["mean_square"] - row["expected_square"]) / row["square_stderr"]


def _root_mean_square_cosine(row: Row) -> float:
    n = row["tokens"]
    return math.sqrt(row["mean_square"] * n**4 / (n * (n - 1)))


def _claims(answers: Answers) -> tuple[Claim, ...]:
    dims = answers.values("head_dim")
    largest = answers.rows(head_dim=max(dims))
    return (
        *(
            Claim(f"{name}: the measure falls as the dimension grows.", holds, "Figure 6")
            for name, holds in (
                (name, falls(pooled_by(answers.rows(width=width), "head_dim")))
                for name, width in SOURCES.items()
            )
        ),
        Claim(
            "Its mean square is the expected one, within four standard errors everywhere.",
            all(abs(_deviation(row)) <= STANDARD_ERRORS + 1 for row in answers.rows()),
        ),
        *_at_the_end(answers.scale, max(dims), largest),
    )


def _at_the_end(scale: Scale, dim: int, rows: list[Row]) -> tuple[Claim, ...]:
    """Said at the printed size alone: in miniature the last dimension is smaller."""
    if scale is not Scale.PAPER:
        return ()
    return (
        Claim(
            f"At {dim} dimensions a typical cosine is at most {SMALL_COSINE}, and so the "
            "vectors are nearly orthonormal.",
            all(_root_mean_square_cosine(row) <= SMALL_COSINE for row in rows),
        ),
    )


_REMARK = (
    "The measure divides by n², the number of cosines, where the norm grows as n: so it is small "
    "for long inputs whatever the dimension. The typical cosine (its root mean square, in the "
    "last column) does not depend on n and is 1/√d_h for Gaussian vectors. Keys made from inputs "
    "of width d keep the cosines of those inputs, of size 1/√d, beside it. The expectation is "
    "exact for the mean square; the thin line is its root."
)

FIGURE_6 = Exhibit(
    name="rank2026/figure_6",
    title="Figure 6, Gaussian part: distance from orthonormal",
    caption="‖C − I‖_F / n² for the cosine similarities C of 100 vectors, against their "
    "dimension: N(0, 1) vectors, and keys X·W_K of N(0, 1) inputs of width 384. Bands: one "
    "standard deviation of single sets of vectors. Thin lines: the root of the exact "
    "expectation of the square.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 6",
)
