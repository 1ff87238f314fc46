"""The scale of initialisation: where the barrier lives, and where it does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.predict_rank import PredictRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, matching
from headwise.papers.kinds.rank_rows import pooled_by, rank_curve
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec
from headwise.theory.law_formula import barrier_ratio

HEAD_DIMS = (2, 4, 8, 16, 32, 64, 96, 192)

#: What T is, as a multiple of √d_h, and the head dimensions it is varied for.
HEATS = tuple(10.0**power for power in (-2, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5))
HEATED = (2, 8, 64)

#: How many standard errors count as noise.
NOISE = 4.0

#: Ways to begin: weights, layer norm before attention, and inputs.
BEGINNINGS: dict[str, dict[str, str]] = {
    "N(0, 1) weights": {},
    "Xavier": {"weights": "xavier"},
    "Xavier, inputs × 10": {"weights": "xavier", "inputs": "normal(0,100)"},
    "the same, layer norm": {"weights": "xavier", "inputs": "normal(0,100)", "norm": "pre"},
}


def _asked(
    fixed: dict[str, Any], dims: Sequence[int], heats: Sequence[float], heated: Sequence[int]
) -> list[Spec]:
    begun = [
        spec
        for beginning in BEGINNINGS.values()
        for spec in grid(MeasureRank, fixed | beginning, head_dim=dims)
    ]
    varied = [
        MeasureRank(**fixed, head_dim=r, temperature=heat * math.sqrt(r))
        for r in heated
        for heat in heats
    ]
    laws = [PredictRank(tokens=fixed.get("tokens", 100), head_dim=r) for r in heated]
    return [*begun, *varied, *laws]


def _laptop() -> list[Spec]:
    return _asked({"batch": 4}, HEAD_DIMS, HEATS, HEATED)


def _miniature() -> list[Spec]:
    sizes = {"tokens": 50, "batch": 3, "heads": 6}
    return _asked(sizes, (8, 64), (1e-2, 1e2, 1e4), (2, 64))


def _present(answers: Answers) -> Presentation:
    rows = answers.rows(kind="measure_rank", temperature=None)
    usual = {"weights": "normal(0,1)", "inputs": "normal(0,1)", "norm": "post"}
    begun = {name: matching(rows, **usual | own) for name, own in BEGINNINGS.items()}
    heated = [row for row in answers.rows(kind="measure_rank") if row["temperature"] is not None]
    laws = {row["head_dim"]: row["ratio"] for row in answers.rows(kind="predict_rank")}
    return Presentation(
        panels=(
            Panel(
                "With logits of about 1 there is no barrier",
                "head dimension",
                "rank / length",
                tuple(_named(name, found) for name, found in begun.items()),
                x_scale="log",
                x_ticks=tuple(sorted({row["head_dim"] for row in rows})),
            ),
            _along_logits(heated, laws),
        ),
        tables=(_table(begun, heated),),
        claims=_claims(begun, heated, laws),
        remarks=_remarks(begun, heated),
    )


def _named(name: str, rows: Sequence[Row]) -> Curve:
    size = sum(row["logit_size"] for row in rows) / len(rows)
    curve = rank_curve(f"{name}\n(logits {_about(size)})", pooled_by(rows, "head_dim"))
    return replace(curve, style="rings", spread=()) if "layer norm" in name else curve


def _about(size: float) -> str:
    return f"{size:.2g}" if size < 10 else f"{size:.0f}"


def _of_dim(rows: Sequence[Row], head_dim: int) -> list[Row]:
    return sorted(matching(rows, head_dim=head_dim), key=lambda row: row["logit_size"])


def _dims(rows: Sequence[Row]) -> list[int]:
    return sorted({row["head_dim"] for row in rows})


def _along_logits(heated: Sequence[Row], laws: dict[int, float]) -> Panel:
    curves = []
    for r in reversed(_dims(heated)):
        own = _of_dim(heated, r)
        sizes = tuple(row["logit_size"] for row in own)
        # The law is that of hardmax: it belongs to the right end.
        end = Line((sizes[-1] / 100, sizes[-1]), (laws[r], laws[r]))
        curve = Line(sizes, tuple(row["mean"] for row in own))
        spread = tuple(row["std"] for row in own)
        curves.append(Curve(f"d_h {r}", curve, spread=spread, law=end))
    return Panel(
        "The barrier is where logits are large",
        "size of the logits (root mean square)",
        "rank / length",
        tuple(curves),
        x_scale="log",
        x_ticks=(0.01, 0.1, 1, 10, 100, 1000, 10_000),
        law_label="law of hardmax",
    )


def _table(begun: dict[str, list[Row]], heated: Sequence[Row]) -> Table:
    rows = [(name, row) for name, found in begun.items() for row in found]
    rows += [("N(0, 1) weights", row) for row in heated]
    return Table.of((_line(name, row) for name, row in rows), title="Every setting")


def _line(name: str, row: Row) -> dict[str, str | int | float]:
    heat = 1.0 if row["temperature"] is None else row["temperature"] / math.sqrt(row["head_dim"])
    return {
        "beginning": name,
        "head dimension": row["head_dim"],
        "temperature / √d_h": float(f"{heat:.4g}"),
        "logit size": row["logit_size"],
        "rank / length": round(row["mean"], 4),
        "± standard error": round(row["stderr"], 4),
    }


def _claims(
    begun: dict[str, list[Row]], heated: Sequence[Row], laws: dict[int, float]
) -> tuple[Claim, ...]:
    sharp, xavier, large, normed = begun.values()
    limit = barrier_ratio(sharp[0]["tokens"])
    sharpest = {r: _of_dim(heated, r)[-1] for r in _dims(heated)}
    widest = _of_dim(heated, max(sharpest))
    return (
        Claim(
            "with N(0, 1) weights no head dimension exceeds the barrier by more than 0.05",
            all(row["mean"] <= limit + 0.05 for row in sharp),
            "rank paper, §2.1; threshold 0.05 chosen by us",
        ),
        Claim(
            "with Xavier weights the rank is full, above 0.99, from d_h 8 on",
            all(row["mean"] > 0.99 for row in xavier if row["head_dim"] >= 8),
        ),
        Claim(
            "Xavier weights on inputs ten times as large have less than full rank at every d_h",
            all(row["mean"] < 0.99 for row in large),
        ),
        Claim(
            "layer norm makes the rank of those inputs full again, above 0.99, from d_h 8 on",
            all(row["mean"] > 0.99 for row in normed if row["head_dim"] >= 8),
        ),
        Claim(
            "at the largest logits the rank is that of the law of hardmax, to within "
            f"max(0.015, {NOISE:.0f} standard errors)",
            all(
                abs(row["mean"] - laws[r]) <= max(0.015, NOISE * row["stderr"])
                for r, row in sharpest.items()
            ),
        ),
        Claim(
            f"at d_h {widest[0]['head_dim']} smaller logits make it full, above 0.99",
            max(row["mean"] for row in widest) > 0.99,
        ),
    )


def _remarks(begun: dict[str, list[Row]], heated: Sequence[Row]) -> tuple[str, ...]:
    smallest, widest = (_of_dim(heated, pick(_dims(heated))) for pick in (min, max))
    full = [row["logit_size"] for row in widest if row["mean"] > 0.99]
    ends = f"for logits from {_about(min(full))} to {_about(max(full))}" if full else "nowhere"
    return (
        "The barrier holds for rows that are nearly one-hot. N(0, 1) weights make logits of about "
        f"{begun['N(0, 1) weights'][0]['logit_size']:.0f}; the usual initialisations, and layer "
        "norm, make them about 1, where a softmax row has all its entries and the ε-rank is full.",
        f"At d_h {widest[0]['head_dim']} the rank is full {ends}. Still smaller logits make "
        f"attention uniform: at d_h {smallest[0]['head_dim']} and logits of "
        f"{_about(smallest[0]['logit_size'])} the rank is "
        f"{smallest[0]['mean']:.2f} of the length, for another reason than the barrier.",
        "A full ε-rank at initialisation does not mean a useful spectrum: at ε = 1e-8 it counts "
        "directions that carry next to nothing.",
    )


INIT_SCALE = Exhibit(
    caption="Rank over length of attention at initialisation; width 384, 100 tokens, N(0, 1) "
    "inputs unless said otherwise, ε = 1e-8, float64 (smaller in miniature). Left: T = √d_h. "
    "Right: N(0, 1) weights, and T from 0.01 to 100,000 times √d_h. Bands: one standard deviation "
    "of single matrices.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop},
    present=_present,
)
