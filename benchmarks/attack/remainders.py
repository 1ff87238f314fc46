"""Matrices aimed at deflation or at near-hardmax: each bends one inequality of an error bound.

Every family takes a random generator and a size, and returns a float64 matrix whose critical
tolerance is 1. Most are triangles [[R₁₁, R₁₁W], [0, R₂₂]]: the leading block lies just above or far
above what deflation asks of it, W is large or nearly parallel, and singular values of the remainder
lie beside 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Generator = np.random.Generator
Family = Callable[[Generator, int], np.ndarray]

#: σ of the leading block, in units of ε, that deflation asks for (deflation.CLEARANCE).
CLEARANCE = 50.0

#: What deflation may drop, in units of ε (deflation.DROPPED_SHARE).
DROPPED = 1e-4

#: Sizes on both sides of the panels of deflation.
PANELS = (127, 128, 129, 255, 256, 257)


def _turn(rng: Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def _beside(rng: Generator, count: int) -> np.ndarray:
    """Numbers within 1e-9 to 5e-3 of 1, mostly on one side: others would hide a miscount."""
    if rng.random() < 0.3:
        return 1 + rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-9, -2.5, count)
    # Deflation's own error is 3e-4 to 1e-3.
    return 1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, -2.3) * rng.uniform(1, 1.5, count)


def _leading(rng: Generator, n: int) -> np.ndarray:
    """A triangle whose inverse has a norm at, just below or far below 1/CLEARANCE."""
    kind = rng.random()
    spread = rng.uniform(1, 2, n) if kind < 0.5 else np.ones(n)
    triangle = np.diag(spread)
    if kind < 0.7:
        triangle += np.triu(rng.standard_normal((n, n)), 1) / (2 * n)
    least = 1 / np.linalg.norm(np.linalg.inv(triangle))
    above = rng.choice([1 + 10.0 ** rng.uniform(-13, -3), 10.0 ** rng.uniform(0, 4)])
    return triangle * (CLEARANCE * above / least)


def _joined(leading: np.ndarray, coupling: np.ndarray, corner: np.ndarray) -> np.ndarray:
    below = np.zeros((len(corner), len(leading)))
    return np.block([[leading, leading @ coupling], [below, corner]])


def _weak_first(corner: np.ndarray) -> np.ndarray:
    """The corner behind one weak column, at which the leading block must end."""
    whole = np.zeros((len(corner) + 1, len(corner) + 1))
    whole[0, 0], whole[1:, 1:] = DROPPED / 10, corner
    return whole


def _parts(rng: Generator, n: int) -> tuple[int, int]:
    """Sizes of the leading block and of the corner; both are at least 3."""
    few = int(rng.integers(3, max(4, n // 2 + 1)))
    return max(3, n - few), few


def coupled(rng: Generator, n: int) -> np.ndarray:
    """A large W, along the directions that matter or across them."""
    lead, few = _parts(rng, n)
    inner, near = few - 1, int(rng.integers(1, few - 1))
    right = _turn(rng, inner)
    if rng.random() < 0.5:  # so that Cholesky's factor has small rows above large ones
        first = rng.standard_normal(inner) * 10.0 ** -rng.uniform(0, 5, inner)
        right = np.linalg.qr(np.column_stack([first, right[:, 1:]]))[0]
    large = 10.0 ** rng.uniform(0, 6)
    along = rng.random() < 0.5
    places = right[:, :near] if along else right[:, near:]
    left = rng.standard_normal((lead, places.shape[1])) / math.sqrt(lead)
    if rng.random() < 0.5:  # sums of equal signs round one way
        left = np.abs(left)
    coupling = np.hstack([np.zeros((lead, 1)), large * left @ places.T])
    values = np.full(inner, 10.0 ** rng.uniform(0, 10))
    values[:near] = _beside(rng, near) * (np.hypot(1, large) if along else 1)
    corner = np.linalg.qr((_turn(rng, inner) * values) @ right.T)[1]
    return _joined(_leading(rng, lead), coupling, _weak_first(corner))


def parallel(rng: Generator, n: int) -> np.ndarray:
    """Columns of W that differ in their last digits only."""
    lead, few = _parts(rng, n)
    one = rng.standard_normal(lead) if rng.random() < 0.5 else np.ones(lead)
    apart = 10.0 ** rng.uniform(-15, -2) * rng.standard_normal((lead, few))
    coupling = 10.0 ** rng.uniform(0, 7) * (one[:, None] + apart)
    length = np.hypot(1, np.linalg.norm(coupling, axis=0))
    kind = rng.random()
    values = _beside(rng, few) * (length if kind < 0.5 else 1.0)
    corner = np.diag(values) + (0.1 * np.triu(rng.standard_normal((few, few)), 1)) * (kind < 0.3)
    return _joined(_leading(rng, lead), coupling, corner)


def at_clearance(rng: Generator, n: int) -> np.ndarray:
    """Half of the values at the clearance and half beside 1, tied by a moderate W."""
    lead, few = _parts(rng, n)
    coupling = 10.0 ** rng.uniform(-3, 1) * rng.standard_normal((lead, few))
    metric = np.eye(few) + coupling.T @ coupling
    root = np.linalg.cholesky(metric).T
    corner = np.linalg.qr((_turn(rng, few) * _beside(rng, few)) @ _turn(rng, few) @ root)[1]
    return _joined(_leading(rng, lead), coupling, corner)


def graded_rows(rng: Generator, n: int) -> np.ndarray:
    """A triangle with rows from 1e10 down to 1e-10, some at what may be dropped."""
    sizes = 10.0 ** np.sort(rng.uniform(-10, rng.uniform(0, 10), n))[::-1]
    last = int(rng.integers(1, n + 1))
    if rng.random() < 0.5:
        sizes[-last:] = DROPPED / math.sqrt(last) * (1 + 10.0 ** rng.uniform(-12, -1))
    triangle = np.triu(rng.standard_normal((n, n))) / math.sqrt(n)
    np.fill_diagonal(triangle, _beside(rng, n))
    return sizes[:, None] * triangle


def hidden(rng: Generator, n: int) -> np.ndarray:
    """A triangle of equal numbers: one small value that no diagonal entry shows."""
    triangle = np.eye(n) - np.triu(np.full((n, n), 10.0 ** rng.uniform(-2.5, 0)), 1)
    if rng.random() < 0.5:  # Kahan's
        angle = rng.uniform(1.0, 1.55)
        triangle = np.eye(n) - math.cos(angle) * np.triu(np.ones((n, n)), 1)
        triangle *= (math.sin(angle) ** np.arange(n))[:, None]
    values = np.linalg.svd(triangle, compute_uv=False)
    at = float(rng.choice(values[values > 1e-9 * values[0]]))
    return triangle / at * float(_beside(rng, 1)[0])


def hidden_behind(rng: Generator, n: int) -> np.ndarray:
    """Gu and Eisenstat's: a hidden small value between two strong blocks."""
    inner = hidden(rng, max(2, n // 2))
    rest = max(1, n - len(inner))
    coupling = rng.standard_normal((len(inner), rest)) * 10.0 ** rng.uniform(-3, 3)
    return _joined(inner, coupling, np.diag(10.0 ** rng.uniform(-1, 6) * _beside(rng, rest)))


def clustered(rng: Generator, n: int) -> np.ndarray:
    """Many values beside 1, others from 1e-12 to 1e10, in general position; often not square."""
    values = 10.0 ** rng.uniform(rng.choice([-12, 0, 1.6]), rng.choice([2, 5, 10]), n)
    near = int(rng.integers(1, n + 1))
    values[:near] = _beside(rng, near)
    extra = int(rng.choice([0, 0, 1, 7]))
    matrix = (_turn(rng, n + extra)[:, :n] * values) @ _turn(rng, n)
    return matrix if rng.random() < 0.5 else matrix.T


def weak_columns(rng: Generator, n: int) -> np.ndarray:
    """Weak and repeated columns in front of strong ones, so that Rᵀ is factored again."""
    strong = max(1, int(rng.integers(1, n + 1)) // 2)
    base = rng.standard_normal((n, strong)) * 10.0 ** rng.uniform(0, 6)
    mixed = base @ rng.standard_normal((strong, n - strong)) * (rng.random() < 0.5)
    noise = _turn(rng, n)[:, : n - strong] * _beside(rng, n - strong)
    return np.hstack([mixed + noise, base])[:, : max(1, n)]


def tied(rng: Generator, n: int) -> np.ndarray:
    """A dense block tied to a weak anchor, beside rows with one entry."""
    few = int(rng.integers(2, max(3, n // 8)))
    ties = rng.standard_normal(few) * 10.0 ** -(rng.uniform(0, 5, few) * (rng.random(few) < 0.6))
    across = np.linalg.qr(np.column_stack([ties, rng.standard_normal((few, few - 1))]))[0]
    near = int(rng.integers(1, few))
    values = np.full(few, 10.0 ** rng.uniform(0, 12))
    values[1 : 1 + near] = _beside(rng, near)
    whole = np.eye(max(n, 8 * few)) * 1e8
    whole[: few + 1] = whole[:, : few + 1] = 0
    whole[0, 0], whole[1 : few + 1, 0] = 10.0 ** rng.uniform(3.01, 5), 1e8 * ties
    whole[1 : few + 1, 1 : few + 1] = (across * values) @ _turn(rng, few)
    return whole


def shared_anchors(rng: Generator, n: int) -> np.ndarray:
    """Rows with a few entries each, in anchored columns and in others, of all sizes."""
    whole = np.zeros((n, n))
    own = rng.permutation(n)[: n // 2]
    whole[own, own] = 10.0 ** rng.uniform(3, rng.uniform(3.1, 9), len(own))
    for row in np.setdiff1d(np.arange(n), own):
        at = rng.integers(0, n, 3)
        whole[row, at] = 10.0 ** rng.uniform(-1, rng.uniform(0, 9), 3) * rng.choice([-1, 1], 3)
        whole[row, row] = _beside(rng, 1)[0]
    return whole


#: Families by what they are aimed at.
REMAINDERS: dict[str, tuple[Family, ...]] = {
    "deflation": (
        *(coupled, parallel, at_clearance, graded_rows, hidden, hidden_behind),
        *(clustered, weak_columns),
    ),
    "near-hardmax": (tied, shared_anchors),
}


@dataclass(frozen=True, eq=False)
class Remainder:
    """A matrix with a name, and the tolerance that hurts it most."""

    aim: str
    family: str
    matrix: np.ndarray
    critical: float

    @classmethod
    def numbered(cls, seed: int, largest: int, aim: str = "deflation") -> Remainder:
        """The matrix with this number; triangles stand as they are, or turned."""
        rng = np.random.default_rng([seed, 3])
        family = REMAINDERS[aim][seed % len(REMAINDERS[aim])]
        panels = [size for size in PANELS if size <= largest]
        at_panel = panels and rng.random() < 0.03
        n = int(rng.choice(panels) if at_panel else rng.integers(6, min(largest, 60) + 1))
        matrix, kind = family(rng, n), rng.random()
        if aim == "near-hardmax":
            matrix = matrix[rng.permutation(len(matrix))]
        elif kind < 0.6:  # a lower triangle is counted without its first factorisation
            matrix = matrix.T
        elif kind < 0.8:
            matrix = _turn(rng, len(matrix)) @ matrix
        scale = 2.0 ** int(rng.integers(-40, 40))
        return cls(aim, family.__name__, np.ascontiguousarray(matrix * scale), scale)

    def tolerances(self, rng: Generator, values: np.ndarray, count: int) -> list[float]:
        """Tolerances within 1e-9 to 1e-2 of the critical one and of singular values near it."""
        close = values[(values > self.critical / 2) & (values < 2 * self.critical)]
        at = [self.critical, *(float(rng.choice(close)) for _ in range(count - 1) if close.size)]
        sides = rng.choice([-1, 1], len(at)) * 10.0 ** rng.uniform(-9, -2, len(at))
        return [centre * (1 + float(side)) for centre, side in zip(at, sides, strict=True)]
