"""The answer's numbers as tables."""

from __future__ import annotations

from headwise.advice.curves import RankCurve
from headwise.advice.result import Advice, Choice, of_plateau
from headwise.advice.retrieval import shown_floor
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.report.tables import Table

COLUMNS = (
    "choice",
    "heads",
    "kv heads",
    "rank",
    "rotary",
    "value rank",
    "parameters",
    "of usual",
    "of largest",
    "token FLOPs",
    "KV bytes",
    "of plateau",
    "meets need",
    "lookup error",
)


def cost_table(advice: Advice) -> Table:
    """Ranked choices first, what they are compared with after.

    Key-value heads and rotary dimensions have a column only where some geometry has them. Costs
    are shares of those of the largest, and of the present model where there is one, else of habit.

    >>> from headwise.advice.advisor import advise_numbers
    >>> table = cost_table(advise_numbers(128, 64))
    >>> table.rows[0][0], "rotary" in table.columns
    ('1 advised', False)
    """
    shown = named_rows(advice)
    geometries = [choice.geometry for _, choice in shown]
    idle = {
        "kv heads": all(g.kv_heads == g.heads for g in geometries),
        "rotary": not any(map(rotary, geometries)),
    }
    kept = [number for number, column in enumerate(COLUMNS) if not idle.get(column, False)]
    rows = (_row(name, choice) for name, choice in shown)
    titles = [f"of {advice.usual}" if column == "of usual" else column for column in COLUMNS]
    return Table(
        tuple(titles[number] for number in kept),
        tuple(tuple(row[number] for number in kept) for row in rows),
    )


def named_rows(advice: Advice) -> list[tuple[str, Choice]]:
    """Every geometry once, with all its names: "1 advised", "3 lookup = habit".

    >>> from headwise.advice.advisor import advise_numbers
    >>> [name for name, _ in named_rows(advise_numbers(512, 768))][-2:]
    ['habit', 'largest']
    """
    names: dict[HeadGeometry, list[str]] = {}
    choices: dict[HeadGeometry, Choice] = {}
    for name, choice in _numbered(advice):
        choices.setdefault(choice.geometry, choice)
        known = names.setdefault(choice.geometry, [])
        if name not in {role.lstrip("0123456789 ") for role in known}:
            known.append(name)
    return [(" = ".join(names[geometry]), choice) for geometry, choice in choices.items()]


def curve_table(advice: Advice) -> Table:
    """Rank / length at each head dimension, from each start, with the half width of its band."""
    curves = advice.evidence.curves
    columns = ["head dimension", *(c.name for c in curves)]
    dims = sorted({dim for curve in curves for dim in curve.head_dims})
    rows = []
    for dim in dims:
        cells = [_point(_points(c), dim) for c in curves]
        rows.append((dim, *cells))
    return Table(tuple(columns), tuple(rows))


def _numbered(advice: Advice) -> list[tuple[str, Choice]]:
    """Ranked choices with their places, then those they are compared with."""
    ranked = [(f"{place} {choice.role}", choice) for place, choice in enumerate(advice.choices, 1)]
    return ranked + [(choice.role, choice) for choice in advice.references]


def _row(name: str, choice: Choice) -> tuple[str | int, ...]:
    g, costs = choice.geometry, choice.costs
    return (
        name,
        g.heads,
        g.kv_heads,
        choice.rank,
        rotary(g),
        g.v_rank,
        short(costs.parameters),
        share(choice.against_usual["parameters"]),
        share(choice.against_largest["parameters"]),
        short(costs.flops_per_token),
        short(costs.cache_bytes_per_token),
        of_plateau(choice.plateau_share),
        met(choice),
        shown_floor(choice.floor, choice.exact),
    )


def share(ratio: float) -> str:
    """A share in percent, and as a multiple where that would be too long.

    >>> share(0.382), share(4.0), share(65_536.0)
    ('38%', '400%', '65.5k×')
    """
    return f"{ratio:.0%}" if ratio < 100 else f"{short(round(ratio))}×"


def short(number: int | float) -> str:
    """A number in three digits.

    >>> short(64), short(4096), short(2_359_296), short(18.9e6)
    ('64', '4.1k', '2.36M', '18.9M')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            value = number / size
            digits = 2 if value < 10 and size >= 1e6 else 1 if value < 100 else 0
            return f"{value:.{digits}f}{letter}"
    return str(number)


def met(choice: Choice) -> str:
    """Whether the choice meets the need that decides, as a cell of a table."""
    return "yes" if choice.meets else "no"


def rotary(geometry: HeadGeometry) -> int:
    """Query-key dimensions beside the rank that carry rotary positions alone.

    >>> rotary(HeadGeometry.standard(64, heads=4))
    0
    """
    return geometry.rope_rank if isinstance(geometry, LatentGeometry) else 0


def _points(curve: RankCurve) -> dict[int, tuple[float, float]]:
    values = zip(curve.mean, curve.half_width, strict=True)
    return dict(zip(curve.head_dims, values, strict=True))


def _point(points: dict[int, tuple[float, float]], dim: int) -> str:
    if dim not in points:
        return ""
    mean, half = points[dim]
    return f"{mean:.3f} ± {half:.3f}" if half else f"{mean:.3f}"
