"""Figure 6: how far Gaussian vectors and embedded image patches are from orthonormal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headwise.experiments.image_orthonormality import ImageOrthonormality
from headwise.experiments.orthonormality import Orthonormality
from headwise.papers.comparison import STANDARD_ERRORS
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, matching
from headwise.papers.kinds.rank_rows import falls, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import HEAD_DIMS
from headwise.papers.kinds.real_ranks import READINGS, SET_NAMES, part_used
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec

#: Vectors of d_h Gaussian entries, and Gaussian inputs of the model's width times weights.
SOURCES = {"N(0, 1) vectors": None, "keys of N(0, 1) inputs": 384}

#: The sets of images that are published.
SETS = ("cifar10", "cifar100")

#: The paper calls its measure small without a number.
SMALL_MEASURE = 0.02

#: A cosine above this is not near zero.
SMALL_COSINE = 0.1

#: Where the paper says it.
PRINTED_AT = "§B.5, Figure 6"

#: The rows of each curve, by its label.
Curves = dict[str, list[Row]]


def _paper() -> list[Spec]:
    return [
        *grid(Orthonormality, {"batch": 128}, width=tuple(SOURCES.values()), head_dim=HEAD_DIMS),
        *_images({"batch": 128}, SETS, HEAD_DIMS),
    ]


def _miniature() -> list[Spec]:
    sizes, dims = {"tokens": 30, "batch": 8}, (2, 16, 64)
    return [
        *grid(Orthonormality, sizes, width=tuple(SOURCES.values()), head_dim=dims),
        *_images({"patch": 2, "batch": 8}, ("digits",), dims),
    ]


def _images(sizes: dict[str, int], sets: Sequence[str], dims: Sequence[int]) -> list[Spec]:
    return grid(ImageOrthonormality, sizes, dataset=sets, start=tuple(READINGS), head_dim=dims)


def _present(answers: Answers) -> Presentation:
    gaussian, images = _gaussian_curves(answers), _image_curves(answers)
    every = gaussian | images
    return Presentation(
        panels=(_measure_panel(every), _cosine_panel(every)),
        tables=(_table(every),),
        claims=_claims(answers, gaussian, images),
        remarks=(_REMARK, _IMAGES, part_used(answers.rows(kind="image_orthonormality"))),
    )


def _gaussian_curves(answers: Answers) -> Curves:
    return {
        name: answers.rows(kind="orthonormality", width=width) for name, width in SOURCES.items()
    }


def _image_curves(answers: Answers) -> Curves:
    sets = dict.fromkeys(row["dataset"] for row in answers.rows(kind="image_orthonormality"))
    return {
        f"{SET_NAMES[name]}, {words}": answers.rows(dataset=name, start=start)
        for name in sets
        for start, words in READINGS.items()
    }


def _measure_panel(curves: Curves) -> Panel:
    drawn = tuple(
        rank_curve(name, pooled_by(rows, "head_dim"), law=_expectation(rows))
        for name, rows in curves.items()
    )
    return _panel("The paper's measure", "‖C − I‖_F / n²", drawn)


def _cosine_panel(curves: Curves) -> Panel:
    drawn = tuple(
        Curve(name, _line(rows, "mean_square"), law=_line(rows, "expected_square"))
        for name, rows in curves.items()
    )
    return _panel("The cosine behind it", "root mean square cosine", drawn)


def _line(rows: list[Row], square: str) -> Line:
    return Line.of({row["head_dim"]: _typical_cosine(row, square) for row in rows if square in row})


def _panel(title: str, y_label: str, curves: tuple[Curve, ...]) -> Panel:
    return Panel(
        title,
        "dimension",
        y_label,
        curves,
        x_scale="log",
        y_scale="log",
        x_ticks=curves[0].mean.x,
        law_label="expectation",
    )


def _expectation(rows: list[Row]) -> dict[float | int, float]:
    return {
        row["head_dim"]: math.sqrt(row["expected_square"])
        for row in rows
        if "expected_square" in row
    }


def _table(curves: Curves) -> Table:
    rows = (
        {
            "vectors": name,
            "tokens": row["tokens"],
            "dimension": row["head_dim"],
            "‖C − I‖_F / n²": f"{row['mean']:.3e}",
            "± standard error": f"{row['stderr']:.1e}",
            "root mean square": f"{math.sqrt(row['mean_square']):.3e}",
            "expected": f"{math.sqrt(row['expected_square']):.3e}" if exact else None,
            "apart, in standard errors": round(_deviation(row), 2) if exact else None,
            "typical cosine": round(_typical_cosine(row), 3),
        }
        for name, own in curves.items()
        for row in own
        for exact in ("expected_square" in row,)
    )
    return Table.of(rows, title="Measured and expected")


def _deviation(row: Row) -> float:
    return (row["mean_square"] - row["expected_square"]) / row["square_stderr"]


def _typical_cosine(row: Row, square: str = "mean_square") -> float:
    n = row["tokens"]
    return math.sqrt(row[square] * n**4 / (n * (n - 1)))


def _claims(answers: Answers, gaussian: Curves, images: Curves) -> tuple[Claim, ...]:
    largest = max(answers.values("head_dim"))
    return (
        *(
            # Section B.5 says that the measure is small; that it falls is ours.
            Claim(f"{name}: the measure falls as the dimension grows.", holds)
            for name, holds in (
                (name, falls(pooled_by(rows, "head_dim"))) for name, rows in gaussian.items()
            )
        ),
        Claim(
            "Gaussian vectors: the mean square is the expected one, within four standard errors "
            "everywhere.",
            all(
                abs(_deviation(row)) <= STANDARD_ERRORS + 1
                for rows in gaussian.values()
                for row in rows
            ),
        ),
        *_at_the_end(answers.scale, largest, gaussian | images),
    )


def _at_the_end(scale: Scale, dim: int, curves: Curves) -> tuple[Claim, ...]:
    """Said at the published size alone: in miniature the last dimension is smaller."""
    if scale is not Scale.PAPER:
        return ()
    ends = {name: matching(rows, head_dim=dim)[0] for name, rows in curves.items()}
    small = Claim(
        f"The measure is small, at most {SMALL_MEASURE}, for all vectors and dimensions.",
        all(row["mean"] <= SMALL_MEASURE for rows in curves.values() for row in rows),
        f"{PRINTED_AT}; threshold {SMALL_MEASURE} chosen by us",
    )
    return (
        small,
        *(
            Claim(
                f"{name}: nearly orthonormal at {dim} dimensions, with a typical cosine of at most "
                f"{SMALL_COSINE}.",
                _typical_cosine(row) <= SMALL_COSINE,
                f"{PRINTED_AT}: nearly orthonormal; the cosine and {SMALL_COSINE} are ours",
            )
            for name, row in ends.items()
        ),
    )


_REMARK = (
    "The measure divides by n², the number of cosines, where the norm grows as n: so it is small "
    "for long inputs whatever the dimension. The typical cosine (its root mean square, in the "
    "last column) does not depend on n and is 1/√d_h for Gaussian vectors. Keys made from inputs "
    "of width d keep the cosines of those inputs, of size 1/√d, in addition. The expectation is "
    "exact for the mean square; the thin line is its root."
)

_IMAGES = (
    "The paper calls the measure small for images too. It cannot be large: for n equal vectors it "
    "is about 1/n, which is 0.016 for the 64 patches of an image. The typical cosine tells "
    "whether patches are nearly orthogonal. We read the dimension as that of the embedding, "
    "and draw one embedding for each. "
    "Images are standardised by channel over the training part."
)

FIGURE_6 = Exhibit(
    caption="Left: ‖C − I‖_F / n² for the cosine similarities C of n vectors, against their "
    "dimension: 100 N(0, 1) vectors, 100 keys X·W_K of N(0, 1) inputs of width 384, and the "
    "4 × 4 patches of CIFAR-10 and CIFAR-100 images after an embedding, N(0, 1) or the model's "
    "own. Right: the root mean square cosine of two vectors. Bands: one standard deviation of "
    "single sets of vectors. Thin lines: the root of the exact expectation of the square.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 6",
)
