"""Inputs that are not centred: a mean that all tokens share takes the rank away."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from headwise.data.synthetic import InputLaw
from headwise.experiments.measure_rank import MeasureRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grouped, matching
from headwise.papers.kinds.rank_rows import pooled_by, rank_curve
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec

SHIFTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
HEAD_DIMS = (2, 4, 8, 16, 32, 64, 96, 192)

#: Head dimensions whose rank is followed along the mean.
FOLLOWED = (8, 32, 96)

#: Laws of the inputs drawn along the head dimension: (inputs, shift, variance).
LAWS: dict[str, tuple[InputLaw, float, float]] = {
    "N(0, 1)": ("normal(0,1)", 0.0, 1.0),
    "N(0, 1) + 1": ("normal(0,1)", 1.0, 1.0),
    "U(0, 1)": ("uniform(0,1)", 0.0, 1 / 12),
    "U(0, 1) − 1/2": ("uniform(0,1)", -0.5, 1 / 12),
}


def _asked(
    fixed: dict[str, Any], shifts: Iterable[float], dims: Sequence[int], followed: Sequence[int]
) -> list[Spec]:
    along_dims = [
        _measured(fixed, r, inputs, shift, variance)
        for inputs, shift, variance in LAWS.values()
        for r in dims
    ]
    return [*(_measured(fixed, r, shift=x) for x in shifts for r in followed), *along_dims]


def _measured(
    fixed: dict[str, Any],
    head_dim: int,
    inputs: InputLaw = "normal(0,1)",
    shift: float = 0.0,
    variance: float = 1.0,
) -> Spec:
    """A measurement at a temperature that undoes the variance of the inputs.

    Logits of centred inputs then have one size, and the mean alone makes a difference.
    """
    heat = math.sqrt(head_dim) * variance
    return MeasureRank(**fixed, head_dim=head_dim, inputs=inputs, shift=shift, temperature=heat)


def _laptop() -> list[Spec]:
    return _asked({"batch": 16}, SHIFTS, HEAD_DIMS, FOLLOWED)


def _miniature() -> list[Spec]:
    sizes = {"width": 192, "tokens": 50, "batch": 3, "heads": 3}
    return _asked(sizes, (0.0, 0.5, 1.0, 4.0), (8, 32), (8, 32))


def _present(answers: Answers) -> Presentation:
    gaussian = grouped(answers.rows(inputs="normal(0,1)"), "head_dim")
    dims = [r for r in FOLLOWED if len({row["shift"] for row in gaussian.get(r, ())}) > 2]
    laws = {
        name: sorted(answers.rows(inputs=inputs, shift=shift), key=lambda row: row["head_dim"])
        for name, (inputs, shift, _) in LAWS.items()
    }
    return Presentation(
        panels=(
            _along_mean(gaussian, laws["U(0, 1)"], dims),
            Panel(
                "Centring brings it back",
                "head dimension",
                "rank / length",
                tuple(_along_dims(name, rows) for name, rows in laws.items()),
                x_scale="log",
                x_ticks=tuple(answers.values("head_dim")),
            ),
        ),
        tables=(_table(laws),),
        claims=_claims(gaussian, laws, dims),
        remarks=_remarks(laws, dims[-1]),
    )


def _relative_mean(row: Row) -> float:
    """The mean of the inputs in units of their spread, as drawn."""
    return row["input_mean"] / row["input_spread"]


def _along_mean(
    gaussian: dict[int, list[Row]], uniform: Sequence[Row], dims: Sequence[int]
) -> Panel:
    curves = [rank_curve(f"N(μ, 1), d_h {r}", pooled_by(gaussian[r], "shift")) for r in dims]
    at = [row for row in uniform if row["head_dim"] in dims]
    points = Line(tuple(map(_relative_mean, at)), tuple(row["mean"] for row in at))
    return Panel(
        "A shared mean takes the rank away",
        "mean of the inputs / their spread",
        "rank / length",
        (*curves, Curve("U(0, 1), the same", points, style="rings")),
    )


def _along_dims(name: str, rows: Sequence[Row]) -> Curve:
    curve = rank_curve(name, pooled_by(rows, "head_dim"))
    return replace(curve, style="rings", spread=()) if LAWS[name][1] < 0 else curve


def _table(laws: dict[str, list[Row]]) -> Table:
    rows = (
        {
            "inputs": name,
            "head dimension": row["head_dim"],
            "mean / spread": round(_relative_mean(row), 3),
            "rank / length": round(row["mean"], 4),
            "± standard error": round(row["stderr"], 4),
            "logit size": round(row["logit_size"], 1),
        }
        for name, found in laws.items()
        for row in found
    )
    return Table.of(rows, title="Rank by law of the inputs")


def _claims(
    gaussian: dict[int, list[Row]], laws: dict[str, list[Row]], dims: Sequence[int]
) -> tuple[Claim, ...]:
    means = [[row["mean"] for row in _sorted(gaussian[r], "shift")] for r in dims]
    centred, uniform, moved = (laws[name] for name in ("N(0, 1)", "U(0, 1)", "U(0, 1) − 1/2"))
    triples = list(zip(centred, uniform, moved, strict=True))
    return (
        Claim(
            "the rank falls as the mean grows, at every head dimension followed",
            all(a > b for found in means for a, b in itertools.pairwise(found)),
        ),
        Claim(
            "U(0, 1) inputs have less than half the rank of centred ones from d_h 32 on",
            all(b["mean"] < 0.5 * a["mean"] for a, b, _ in triples if a["head_dim"] >= 32),
        ),
        Claim(
            "U(0, 1) inputs less their mean have the rank of N(0, 1) inputs, to within "
            "max(0.015, 4 combined standard errors)",
            all(_near(a, c) for a, _, c in triples),
        ),
    )


def _near(a: Row, b: Row) -> bool:
    return abs(a["mean"] - b["mean"]) <= max(0.015, 4 * math.hypot(a["stderr"], b["stderr"]))


def _sorted(rows: Sequence[Row], field: str) -> list[Row]:
    return sorted(rows, key=lambda row: row[field])


def _remarks(laws: dict[str, list[Row]], head_dim: int) -> tuple[str, ...]:
    at = {name: matching(rows, head_dim=head_dim)[0] for name, rows in laws.items()}
    return (
        "With x = μ1 + z every query is q = W_Q z + μ W_Q 1. The second part is the same for all "
        "tokens, so all queries lean towards the same keys, the more the larger μ over the "
        "spread of z.",
        f"At d_h {head_dim}: {at['N(0, 1)']['mean']:.3f} for N(0, 1), "
        f"{at['U(0, 1)']['mean']:.3f} for U(0, 1), {at['U(0, 1) − 1/2']['mean']:.3f} after its "
        "mean is subtracted. Pixel values, ReLU outputs and embeddings with a common direction are "
        "such inputs: check their mean before taking a rank for a limit of attention.",
    )


UNCENTRED_INPUTS = Exhibit(
    caption="Rank over length of attention at initialisation when the inputs have a mean; width "
    "384, 100 tokens, N(0, 1) weights, ε = 1e-8, float64 (smaller in miniature). T is √d_h "
    "times the variance of the inputs, so that all logits are equally large but for the mean. "
    "Bands: one standard deviation of single matrices.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop},
    present=_present,
)
