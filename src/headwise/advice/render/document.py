"""The answer as one document that every face renders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from headwise.advice.answer import Answer, Choice
from headwise.advice.curves import RankCurve
from headwise.advice.geometries.heads import content_rank, rotary_rank
from headwise.advice.words.answer import (
    LABELS,
    caveat,
    choice_words,
    headline,
    legend,
    met_words,
    notes,
    over_words,
    question_words,
    reason_codes,
    reasons,
    retrieval_words,
    row_name,
)
from headwise.advice.words.finding import finding_table, sentence, trained_words
from headwise.advice.words.terms import START_LONG, geometry_words, percent
from headwise.faces import Face, spoken
from headwise.geometry import HeadGeometry
from headwise.report.tables import Table

#: Rows of the table at a glance; the page and ``--explain`` show all.
MOST_ROWS = 6


@dataclass(frozen=True)
class Row:
    """One geometry of the table: its names, whether it is advised, and its choice."""

    names: tuple[str, ...]
    advised: bool
    choice: Choice

    @property
    def name(self) -> str:
        """All its names in one: "usual = largest"."""
        return " = ".join(self.names)


@dataclass(frozen=True)
class Detail:
    """What was found besides the reasons: a label, a sentence, and its table if it has one."""

    label: str
    words: str
    table: Table | None


@dataclass(frozen=True)
class Document:
    """Everything that is shown, in order. Words are final; tables hold final cells.

    ``first_legend`` explains the first ``MOST_ROWS`` rows of the table, ``legend`` all of them.
    ``whole_table`` has FLOPs too, for which a terminal has no room; ``costs`` has every cost as a
    share of others.
    """

    question: str
    headline: str
    rows: tuple[Row, ...]
    table: Table
    whole_table: Table
    costs: Table
    legend: tuple[str, ...]
    first_legend: tuple[str, ...]
    reasons: tuple[str, ...]
    caveat: str
    details: tuple[Detail, ...]
    choices: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    curves: Table
    curve_notes: tuple[str, ...]


def document(answer: Answer, face: Face = "python") -> Document:
    """Arrange an answer for all renderers, with parameters as this reader spells them."""
    rows = table_rows(answer)
    return Document(
        question=spoken(question_words(answer), face),
        headline=headline(answer),
        rows=rows,
        table=_table(answer, rows),
        whole_table=_table(answer, rows, whole=True),
        costs=_costs(answer, rows),
        legend=tuple(legend(answer, [row.choice for row in rows])),
        first_legend=tuple(legend(answer, [row.choice for row in rows[:MOST_ROWS]])),
        reasons=tuple(spoken(line, face) for line in reasons(answer)),
        caveat=caveat(answer),
        details=tuple(_details(answer, face)),
        choices=tuple(
            (geometry_words(choice.geometry), choice_words(answer, choice))
            for choice in answer.choices
        ),
        notes=tuple(notes(answer)),
        curves=_curves(answer),
        curve_notes=tuple(_curve_note(curve) for curve in answer.evidence.curves),
    )


def _details(answer: Answer, face: Face) -> Iterator[Detail]:
    """Every finding that is no reason, and the tables of all."""
    known = reason_codes(answer)
    for one in answer.findings:
        table = finding_table(one)
        if one.code not in known:
            label = LABELS.get(one.code, one.code.capitalize())
            yield Detail(label, spoken(sentence(one), face), table)
        elif table is not None:
            yield Detail("Trained tasks", trained_words(one.values), table)


def as_json(answer: Answer) -> dict[str, Any]:
    """Everything as plain numbers, lists and words."""
    findings = [
        {"code": one.code, "values": _plain(one.values), "text": sentence(one)}
        for one in answer.findings
    ]
    words = {"question": question_words(answer), "answer": headline(answer)}
    return {
        **words,
        "caveat": caveat(answer),
        **answer.data(),
        "reasons": reasons(answer),
        "findings": findings,
    }


def table_rows(answer: Answer) -> tuple[Row, ...]:
    """Every geometry once, with all its names; the advised one first."""
    names: dict[HeadGeometry, list[str]] = {}
    choices: dict[HeadGeometry, Choice] = {}
    for choice in (*answer.choices, *answer.references):
        choices.setdefault(choice.geometry, choice)
        known = names.setdefault(choice.geometry, [])
        name = row_name(answer, choice)
        if name not in known:
            known.append(name)
    best = answer.best.geometry
    shared = Counter(name for known in names.values() for name in known)
    return tuple(
        Row(tuple(_told_apart(name, g, shared[name]) for name in names[g]), g == best, choice)
        for g, choice in choices.items()
    )


def _told_apart(name: str, geometry: HeadGeometry, rows: int) -> str:
    """The name of a row; with heads and rank where several rows have it."""
    return name if rows == 1 else f"{name}, {geometry.heads} × {content_rank(geometry)}"


def _table(answer: Answer, rows: tuple[Row, ...], *, whole: bool = False) -> Table:
    """What each geometry is, costs and can do. Columns that say nothing are left out."""
    against = "yours" if answer.present is not None else "usual"
    columns: dict[str, list[Any]] = {
        "": [("→ " if row.advised else "  ") + row.name for row in rows],
        "heads": [row.choice.geometry.heads for row in rows],
        "kv": [row.choice.geometry.kv_heads for row in rows],
        "rank": [row.choice.rank for row in rows],
        "rotary": [rotary_rank(row.choice.geometry) for row in rows],
        "values": [row.choice.geometry.v_rank for row in rows],
        "params": [short(row.choice.costs.parameters) for row in rows],
        f"of {against}": [share(_against(row.choice)["parameters"]) for row in rows],
        "FLOPs": [short(row.choice.costs.flops_per_token) for row in rows],
        "KV bytes": [short(row.choice.costs.cache_bytes_per_token) for row in rows],
        "mixing": [percent(row.choice.plateau_share) for row in rows],
        "retrieval": [retrieval_words(answer.rank, row.choice) for row in rows],
        "enough": [_met(answer, row.choice) for row in rows],
    }
    if not whole:
        del columns["FLOPs"]
    if columns["kv"] == columns["heads"]:
        del columns["kv"]
    if not any(columns["rotary"]):
        del columns["rotary"]
    if columns["values"] == columns["rank"]:
        del columns["values"]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _met(answer: Answer, choice: Choice) -> str:
    return over_words(answer, choice) or met_words(answer.rank, choice)


def _costs(answer: Answer, rows: tuple[Row, ...]) -> Table:
    """All costs, as such and as shares of the usual (or present) and the largest geometry."""
    against = "yours" if answer.present is not None else "usual"
    titles = {
        "parameters": "parameters",
        "flops_per_token": "FLOPs",
        "cache_bytes_per_token": "KV bytes",
    }
    columns = [""]
    for title in titles.values():
        columns += [title, f"of {against}", "of largest"]
    cells = [
        (
            row.name,
            *(
                cell
                for name in titles
                for cell in (
                    short(getattr(row.choice.costs, name)),
                    share(_against(row.choice)[name]),
                    share(row.choice.against_largest[name]),
                )
            ),
        )
        for row in rows
    ]
    return Table(tuple(columns), tuple(cells))


def _against(choice: Choice) -> dict[str, float]:
    return choice.against_present or choice.against_usual


def _curves(answer: Answer) -> Table:
    """Rank / length at each head dimension, with the half width of its band."""
    curves = answer.evidence.curves
    points = [
        dict(zip(c.head_dims, zip(c.mean, c.half_width, strict=True), strict=True)) for c in curves
    ]
    dims = sorted({dim for curve in curves for dim in curve.head_dims})
    rows = [(dim, *(_point(known.get(dim)) for known in points)) for dim in dims]
    return Table(("head dimension", *(c.name for c in curves)), tuple(rows))


def _point(point: tuple[float, float] | None) -> str:
    if point is None:
        return ""
    mean, half = point
    return f"{mean:.3f} ± {half:.3f}" if half else f"{mean:.3f}"


def _curve_note(curve: RankCurve) -> str:
    seeds = f"{curve.seeds} seeds" if curve.seeds else "the curve of headwise law"
    plateau = f"plateau {curve.plateau:.3f} ({curve.plateau_from})"
    return f"{curve.name}: {START_LONG[curve.start]}; {seeds}; {plateau}."


def share(ratio: float) -> str:
    """A share in percent, or as a multiple where that would be long."""
    return f"{ratio:.0%}" if ratio < 100 else f"{short(round(ratio))}×"


def short(number: int | float) -> str:
    """A number in three digits."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            value = number / size
            digits = 2 if value < 10 and size >= 1e6 else 1 if value < 100 else 0
            return f"{value:.{digits}f}{letter}"
    return str(number)


def _plain(value: Any) -> Any:
    """Values without dataclasses and tuples, as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
