"""The heads paper's price of low rank: the least error of looking up the nearer of two tokens."""

from __future__ import annotations

from headwise.advice.evidence import Evidence
from headwise.advice.rule import MARGIN, whole_dimension
from headwise.theory.harmonics import error_lower_bound

#: A bound below this says nothing.
NEGLIGIBLE = 0.0005


def retrieval_floor(effective_dimension: float, rank: int, heads: int) -> float:
    """The least mean squared error of ``heads`` rank-r heads on isotropic tokens (0 … 0.5).

    Their dimension is taken to be the effective one. At that rank one head is exact.

    >>> retrieval_floor(63.7, 64, heads=1), round(retrieval_floor(64.0, 8, heads=8), 4)
    (0.0, 0.1768)
    """
    if is_exact(effective_dimension, rank):
        return 0.0
    return error_lower_bound(max(2, whole_dimension(effective_dimension)), rank, heads)


def is_exact(effective_dimension: float, rank: int) -> bool:
    """Whether one head of this rank can look isotropic tokens of that dimension up exactly.

    >>> is_exact(7.02, 7), is_exact(7.2, 7)
    (True, False)
    """
    return rank >= whole_dimension(effective_dimension)


def shown_floor(floor: float, exact: bool) -> str:
    """The bound as a cell of a table: 0 where one head is exact, a dash where it says nothing.

    >>> shown_floor(0.0, exact=True), shown_floor(0.1768, exact=False)
    ('0', '≥ 0.177')
    >>> shown_floor(0.0, exact=False)
    '–'
    """
    if exact:
        return "0"
    return f"≥ {floor:.3f}" if floor >= NEGLIGIBLE else "–"


def lookup_limit(evidence: Evidence) -> str | None:
    """What lookup takes no more than, where its margin alone would ask for more."""
    known = evidence.statistics
    if known is None or known.effective_dimension * MARGIN <= evidence.directions:
        return None
    return "the numbers of a token" if evidence.directions < evidence.width else "the width"


def floor_words(effective_dimension: float) -> str:
    """What the cells mean, for the line under the table."""
    dimension = whole_dimension(effective_dimension)
    return (
        "Lookup error: the least mean squared error with which so many heads of that rank find the "
        f"nearer of two isotropic tokens in {dimension} dimensions (heads paper's lower bound). "
        "0: one head can be exact; –: the bound says nothing."
    )
