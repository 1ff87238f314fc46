"""The float32 trap: what the usual ways of asking for a rank say of the same heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from headwise.experiments.count_by_method import CountByMethod
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.papers.kinds.rank_rows import pooled_by, rank_curve
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

WIDTH, TOKENS = 960, 200

#: Head dimensions of sharp heads (T = √d_h, logits in the hundreds), as in Table 1.
SHARP_DIMS = (2, 4, 8, 16, 32, 64, 96)

#: Of soft ones (logits of about 1), where the rank is below the length at all.
SOFT_DIMS = (1, 2, 3, 4, 6, 8)

#: The truth: every head's certified count.
CERTIFIED = ("float64", "headwise", "float64")

#: What is drawn, by (stored, method, arithmetic): label and style. The table has the rest.
DRAWN: dict[tuple[str, str, str], tuple[str, Literal["joined", "rings"]]] = {
    CERTIFIED: ("float64, certified", "joined"),
    ("float32", "svd at ε", "float32"): ("float32, SVD", "joined"),
    ("bfloat16", "svd at ε", "float64"): ("bfloat16,\nSVD in float64", "rings"),
    ("float64", "numpy's default", "float64"): ("float64,\nnumpy's default", "joined"),
    ("float64", "√eig(AᵀA) at ε", "float64"): ("float64, √eig(AᵀA)", "rings"),
}


def _heads(sizes: dict[str, Any], sharp: Sequence[int], soft: Sequence[int]) -> list[Spec]:
    return [
        *grid(CountByMethod, sizes, head_dim=sharp),
        *(
            # N(0, 1) tokens of width d make logits of size d/T·√d_h: this T makes them about 1.
            CountByMethod(head_dim=r, temperature=sizes["width"] * math.sqrt(r), **sizes)
            for r in soft
        ),
    ]


def _laptop() -> list[Spec]:
    return _heads({"width": WIDTH, "tokens": TOKENS, "heads": 16}, SHARP_DIMS, SOFT_DIMS)


def _miniature() -> list[Spec]:
    return _heads({"width": 384, "tokens": 60, "heads": 4}, (8, 64), (1, 2))


def _present(answers: Answers) -> Presentation:
    sharp = answers.rows(temperature=None)
    soft = [row for row in answers.rows() if row["temperature"] is not None]
    return Presentation(
        panels=(
            _panel("Sharp heads: the arithmetic misleads", sharp),
            _panel("Soft heads: the storage misleads", soft),
        ),
        tables=(
            _table("Sharp heads: rank / length by way of counting", sharp),
            _table("Soft heads: rank / length by way of counting", soft),
        ),
        claims=_claims(sharp, soft),
        remarks=_remarks(sharp, soft),
    )


def _way(row: Row) -> tuple[str, str, str]:
    return row["stored"], row["method"], row["arithmetic"]


def _of(rows: Sequence[Row], *way: str) -> list[Row]:
    return [row for row in rows if _way(row) == way]


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    curves = []
    for way, (label, style) in DRAWN.items():
        curve = rank_curve(label, pooled_by(_of(rows, *way), "head_dim"))
        curves.append(replace(curve, style=style, spread=() if style == "rings" else curve.spread))
    return Panel(
        title,
        "head dimension",
        "reported rank / length",
        tuple(curves),
        x_scale="log",
        x_ticks=tuple(sorted({row["head_dim"] for row in rows})),
    )


def _table(title: str, rows: Sequence[Row]) -> Table:
    return Table.of((_line(rows, way) for way in dict.fromkeys(map(_way, rows))), title=title)


def _line(rows: Sequence[Row], way: tuple[str, str, str]) -> dict[str, str]:
    own = sorted(_of(rows, *way), key=lambda row: row["head_dim"])
    right, heads = (sum(row[name] for row in own) for name in ("agreeing", "count"))
    return {
        **dict(zip(("stored as", "method", "arithmetic"), way, strict=True)),
        **{f"d_h {row['head_dim']}": _shown(row) for row in own},
        "heads right": f"{right} of {heads}",
    }


def _shown(row: Row) -> str:
    if row["undecided"]:
        return f"{row['low']:.3f} to {row['high']:.3f}"
    return f"{row['mean']:.3f}"


def _excess(rows: Sequence[Row], *way: str) -> list[float]:
    """Reported over certified, at each head dimension."""
    truth = {row["head_dim"]: row["mean"] for row in _of(rows, *CERTIFIED)}
    return [row["mean"] / truth[row["head_dim"]] for row in _of(rows, *way)]


def _claims(sharp: Sequence[Row], soft: Sequence[Row]) -> tuple[Claim, ...]:
    everything = [*sharp, *soft]
    plain = _of(everything, "float64", "svd at ε", "float64")
    copies = _of(everything, "float32", "headwise", "float64")
    half = _of(sharp, "bfloat16", "svd at ε", "float64")
    return (
        Claim(
            "float64 and a plain SVD at ε count every head as certified",
            all(row["agreeing"] == row["count"] for row in plain),
        ),
        Claim(
            "float32 reports at least 1.2 times the rank of sharp heads, at every head dimension",
            min(_excess(sharp, "float32", "svd at ε", "float32")) >= 1.2,
        ),
        Claim(
            "sharp heads stored in bfloat16 and decomposed in float64 are counted rightly: there "
            "the error is in the arithmetic, not in the copy",
            all(row["agreeing"] == row["count"] for row in half),
        ),
        Claim(
            "soft heads stored in bfloat16 have full rank, whatever their true rank, even "
            "decomposed in float64",
            all(row["mean"] > 0.99 for row in _of(soft, "bfloat16", "svd at ε", "float64")),
        ),
        Claim(
            "√eig(AᵀA) in float64 reports too high a rank at every sharp head dimension",
            min(_excess(sharp, "float64", "√eig(AᵀA) at ε", "float64")) > 1.0,
        ),
        Claim(
            "the interval that headwise gives of a float32 copy contains the certified rank",
            all(row["agreeing"] == row["count"] for row in copies),
        ),
    )


def _remarks(sharp: Sequence[Row], soft: Sequence[Row]) -> tuple[str, ...]:
    single = _excess(sharp, "float32", "svd at ε", "float32")
    half = _excess(soft, "bfloat16", "svd at ε", "float64")
    return (
        f"For sharp heads float32 reports {min(single):.2f} to {max(single):.2f} times the rank. A "
        "decomposition in float32 errs by about 1e-7 of the largest singular value, more than "
        "ε = 1e-8. The matrix itself survives storage: its large entries are ones and its small "
        "ones keep their relative precision.",
        f"For soft heads bfloat16 reports up to {max(half):.1f} times the rank in any arithmetic: "
        "every entry is rounded by up to 1 part in 512, which is noise of full rank far above ε.",
        "The default tolerance of numpy and torch is a share of the largest singular value that "
        "depends on dtype and size. It answers another question, and the answer changes with the "
        "dtype.",
    )


FLOAT32_TRAP = Exhibit(
    caption="The same heads counted in different ways; inputs and weights N(0, 1), ε = 1e-8. "
    "Left: T = √d_h, logits in the hundreds, rows of attention nearly one-hot. Right: T = d √d_h, "
    "logits of about 1, rows smooth. Bands: one standard deviation of single heads.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop},
    present=_present,
)
