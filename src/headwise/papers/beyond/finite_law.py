"""The finite law: simulated hardmax rank against L(n, d_h) and its corrected form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from headwise.papers.beyond.random_heads import (
    FEW_KEYS,
    GPU_KEYS,
    Point,
    asked,
    by_dimension,
    points_of,
)
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Spec
from headwise.theory.expected import LAW_ERROR

#: How many standard errors count as noise; there are over a hundred cells.
NOISE = 4.0


def _cells(powers: Sequence[int], dims: Sequence[int]) -> list[tuple[int, int]]:
    return [(2**power, r) for power in powers for r in dims]


def _miniature() -> list[Spec]:
    return asked(_cells((5, 7, 9), (16, 64)), keys=FEW_KEYS)


def _laptop() -> list[Spec]:
    return asked(_cells(range(5, 15), (16, 32, 64, 128)))


def _gpu() -> list[Spec]:
    return asked(_cells(range(5, 21), (16, 32, 64, 128, 256, 512, 1024)), keys=GPU_KEYS)


def _present(answers: Answers) -> Presentation:
    points = points_of(answers)
    every = [point for found in points.values() for point in found]
    curves = dict(reversed(by_dimension(points).items()))
    return Presentation(
        panels=(
            Panel(
                "Law and simulation",
                "length (tokens)",
                "hardmax rank / length",
                tuple(_simulated(r, found) for r, found in curves.items()),
                x_scale="log",
                levels=(("", 1 - 1 / math.e),),
            ),
            Panel(
                "Simulation minus corrected law",
                "length (tokens)",
                "difference of rank / length",
                tuple(_residuals(r, found) for r, found in curves.items()),
                x_scale="log",
                levels=((f"{LAW_ERROR}", LAW_ERROR), (f"−{LAW_ERROR}", -LAW_ERROR)),
            ),
        ),
        tables=(_table(every),),
        claims=_claims(every, curves),
        remarks=_remarks(every),
    )


def _simulated(head_dim: int, found: Sequence[Point]) -> Curve:
    return Curve(
        f"d_h {head_dim}",
        Line.of({point.tokens: point.mean for point in found}),
        law=Line.of({point.tokens: point.corrected for point in found}),
        style="rings",
    )


def _residuals(head_dim: int, found: Sequence[Point]) -> Curve:
    left = {point.tokens: point.mean - point.corrected for point in found}
    return Curve(f"d_h {head_dim}", Line.of(left))


def _excess(point: Point, theory: float) -> float:
    """How far theory lies from simulation beyond the noise of the simulation."""
    return max(0.0, abs(point.mean - theory) - NOISE * point.stderr)


def _claims(every: Sequence[Point], curves: dict[int, list[Point]]) -> tuple[Claim, ...]:
    pairs = [pair for found in curves.values() for pair in itertools.pairwise(found)]
    return (
        Claim(
            f"L is an upper bound: simulation exceeds it nowhere by more than {NOISE:.0f} standard "
            "errors",
            all(point.mean <= point.law + NOISE * point.stderr for point in every),
        ),
        Claim(
            f"the corrected law is within {LAW_ERROR} of simulation everywhere, less "
            f"{NOISE:.0f} standard errors of noise",
            all(_excess(point, point.corrected) <= LAW_ERROR for point in every),
        ),
        Claim(
            "at every head dimension the rank over length falls as the length grows",
            all(b.mean < a.mean + NOISE * max(a.stderr, b.stderr) for a, b in pairs),
        ),
        Claim(
            "no length and head dimension reaches the barrier",
            all(point.mean < point.barrier + NOISE * point.stderr for point in every),
            f"rank paper, §1; {NOISE:.0f} standard errors chosen by us",
        ),
    )


def _table(every: Sequence[Point]) -> Table:
    rows = (
        {
            "tokens": point.tokens,
            "d_h": point.head_dim,
            "simulated": round(point.mean, 4),
            "± standard error": round(point.stderr, 4),
            "L": round(point.law, 4),
            "corrected law": round(point.corrected, 4),
            "barrier": round(point.barrier, 4),
        }
        for point in every
    )
    return Table.of(rows, title="Simulated hardmax rank / length, and the law")


def _remarks(every: Sequence[Point]) -> tuple[str, ...]:
    plain = max(every, key=lambda point: point.law - point.mean)
    mended = max(every, key=lambda point: abs(point.corrected - point.mean))
    noise = max(point.stderr for point in every)
    return (
        f"Largest excess of L over simulation: {plain.law - plain.mean:.4f}, at {plain.tokens} "
        f"tokens and d_h {plain.head_dim}. Largest distance of the corrected law: "
        f"{abs(mended.corrected - mended.mean):.4f}, at {mended.tokens} tokens and d_h "
        f"{mended.head_dim}. Largest standard error of a mean: {noise:.4f}.",
        "At a fixed head dimension longer sequences use a smaller share of their columns: the "
        "barrier 1 − 1/e is the limit of this curve, and no head of practical size reaches it on a "
        "long sequence.",
    )


FINITE_LAW = Exhibit(
    caption="Hardmax rank over length of heads with independent N(0, 1) queries and keys. Points: "
    "simulation. Thin lines: the law with its fluctuations. Dashed: 1 − 1/e. Right: their "
    "difference; dashed, the error that the law states for itself; points of few "
    "draws may lie outside by up to four of their standard errors. Scores are float64; beyond 2¹⁴ "
    "tokens float32, of queries and keys rounded to TensorFloat-32.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop, Scale.GPU: _gpu},
    present=_present,
)
