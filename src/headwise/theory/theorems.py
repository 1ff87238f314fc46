"""The index: every statement, where it is printed, its bound, its simulation and its violator."""

from __future__ import annotations

from headwise.theory.statements.law_and_heads import LAW_AND_HEADS_STATEMENTS
from headwise.theory.statements.matrices import MATRIX_STATEMENTS
from headwise.theory.statements.rows import ROW_STATEMENTS
from headwise.theory.statements.statement import Evidence, Sense, Statement, Verdict

__all__ = ["STATEMENTS", "Evidence", "Sense", "Statement", "Verdict", "index_page"]

STATEMENTS: tuple[Statement, ...] = (
    *ROW_STATEMENTS,
    *MATRIX_STATEMENTS,
    *LAW_AND_HEADS_STATEMENTS,
)

_HEADER = """# Theorems

Every statement that headwise evaluates, with a simulation that tries to break it and a planted
violator that the same check must reject. Wording is ours, in the form that can be computed.
This page is written by `python docs/make_theorems.py`; a test keeps it up to date.

| statement | printed | says | simulation | bound | closeness | violator |
|---|---|---|---|---|---|---|
"""


def index_page(seed: int = 0) -> str:
    """The documentation page: one row per statement, with what the simulation found.

    >>> index_page.__module__
    'headwise.theory.theorems'
    """
    return _HEADER + "".join(_row(statement, seed) for statement in STATEMENTS)


def _row(statement: Statement, seed: int) -> str:
    seen = statement.check(statement.simulate(seed))
    caught = statement.check(statement.violate(seed))
    cells = (
        f"**{statement.label}**",
        statement.printed,
        statement.words,
        f"{_shown(seen)} {'holds' if seen.accepted else 'BROKEN'}",
        f"{statement.sense.value} {seen.bound:.4g}",
        f"{seen.closeness:.2f}",
        f"{_shown(caught)}, {'ACCEPTED' if caught.accepted else 'rejected'}",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _shown(verdict: Verdict) -> str:
    seen = verdict.observed
    # Rounding dust differs from machine to machine; the page must not.
    mean = 0.0 if abs(seen.mean) < 1e-12 else seen.mean
    return f"{mean:.4g}" if seen.stderr < 1e-12 else f"{mean:.4g} ± {seen.stderr:.2g}"
