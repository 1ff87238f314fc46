"""The answer's numbers as tables."""

from __future__ import annotations

from headwise.advice.candidates import content_rank
from headwise.advice.curves import RankCurve
from headwise.advice.result import Advice, Choice
from headwise.report.tables import Table

COLUMNS = (
    "choice",
    "heads",
    "kv heads",
    "qk rank",
    "v rank",
    "parameters",
    "of habit",
    "FLOPs/token",
    "KV bytes",
    "of plateau",
    "lookup error",
)


def cost_table(advice: Advice) -> Table:
    """Ranked choices first, what they are compared with after.

    >>> from headwise.advice.advisor import advise_numbers
    >>> cost_table(advise_numbers(128, 64)).rows[0][0]
    '1 advised'
    """
    rows = [_row(f"{place} {choice.role}", choice, advice) for place, choice in _numbered(advice)]
    rows += [_row(choice.role, choice, advice) for choice in advice.references]
    return Table(COLUMNS, tuple(rows))


def curve_table(advice: Advice) -> Table:
    """Rank / length at each head dimension, from each start, with the half width of its band."""
    curves = advice.evidence.curves
    columns = ["head dimension", *(f"{c.start}" for c in curves)]
    dims = sorted({dim for curve in curves for dim in curve.head_dims})
    rows = []
    for dim in dims:
        cells = [_point(_points(c), dim) for c in curves]
        rows.append((dim, *cells))
    return Table(tuple(columns), tuple(rows))


def _numbered(advice: Advice) -> list[tuple[int, Choice]]:
    return list(enumerate(advice.choices, 1))


def _row(name: str, choice: Choice, advice: Advice) -> tuple[str | int, ...]:
    g, costs = choice.geometry, choice.costs
    return (
        name,
        g.heads,
        g.kv_heads,
        g.qk_rank,
        g.v_rank,
        f"{costs.parameters:,}",
        f"{choice.against_habit['parameters']:.0%}",
        f"{costs.flops_per_token:,}",
        f"{costs.cache_bytes_per_token:,}",
        f"{choice.plateau_share:.0%}",
        f"≥ {choice.floor:.3f}" if content_rank(g) < advice.rank.retrieval else "0",
    )


def _points(curve: RankCurve) -> dict[int, tuple[float, float]]:
    values = zip(curve.mean, curve.half_width, strict=True)
    return dict(zip(curve.head_dims, values, strict=True))


def _point(points: dict[int, tuple[float, float]], dim: int) -> str:
    if dim not in points:
        return ""
    mean, half = points[dim]
    return f"{mean:.3f} ± {half:.3f}" if half else f"{mean:.3f}"
