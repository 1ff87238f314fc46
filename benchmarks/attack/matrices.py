"""Matrices made to mislead a count, and the tolerances that hurt them most.

Every family takes a random generator and a size, and returns one float64 matrix or one array
of logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg
import scipy.special

Generator = np.random.Generator
Family = Callable[[Generator, int], np.ndarray]


def _orthogonal(rng: Generator, n: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def _with_values(rng: Generator, values: np.ndarray) -> np.ndarray:
    """A matrix with these singular values, up to rounding."""
    n = len(values)
    return _orthogonal(rng, n) * values @ _orthogonal(rng, n)


def hardmax(rng: Generator, n: int) -> np.ndarray:
    """One-hot rows: every singular value is the root of an integer."""
    return np.eye(n)[rng.integers(0, n, n)]


def saturated(rng: Generator, n: int) -> np.ndarray:
    """Softmax of huge logits: ones, and here and there a denormal."""
    return scipy.special.softmax(10.0 ** rng.uniform(2, 4) * rng.standard_normal((n, n)), -1)


def near_hardmax(rng: Generator, n: int) -> np.ndarray:
    """One-hot rows with stray entries of every size."""
    stray = 10.0 ** rng.uniform(-14, 0, (n, n)) * (rng.random((n, n)) < 1.5 / n)
    return hardmax(rng, n) + stray


def clusters(rng: Generator, n: int) -> np.ndarray:
    """Rows on the same few columns that differ by a relative 1e-4 to 1e-12."""
    base = hardmax(rng, n) + 0.3 * hardmax(rng, n)
    base = base[rng.integers(0, max(1, n // 3), n)]
    return base * (1 + 10.0 ** rng.uniform(-12, -4, (n, n)))


def kahan(rng: Generator, n: int) -> np.ndarray:
    """Kahan's triangle, whose least singular value the diagonal hides; at any scale."""
    angle = rng.uniform(0.2, 1.4)
    scale = 10.0 ** rng.choice([0.0, 0.0, -20.0, -30.0])
    graded = math.sin(angle) ** np.arange(n)
    return scale * graded[:, None] * (np.eye(n) - math.cos(angle) * np.triu(np.ones((n, n)), 1))


def hilbert(_: Generator, n: int) -> np.ndarray:
    """1/(i + j + 1): singular values fall by a constant factor."""
    return scipy.linalg.hilbert(n)


def toeplitz(rng: Generator, n: int) -> np.ndarray:
    """Constant along diagonals: a smooth kernel, nearly singular."""
    return scipy.linalg.toeplitz(np.exp(-((np.arange(n) / n) ** 2) * rng.uniform(0.5, 20)))


def graded(rng: Generator, n: int) -> np.ndarray:
    """Rows and columns scaled over twenty orders of magnitude."""
    left, right = (10.0 ** rng.uniform(-10, 0, n) for _ in range(2))
    return left[:, None] * rng.standard_normal((n, n)) * right


def duplicates(rng: Generator, n: int) -> np.ndarray:
    """Columns that occur several times, some moved in their last digits."""
    matrix = rng.random((n, n))[:, rng.integers(0, n, n)]
    moved = rng.random(n) < 0.3
    return matrix * np.where(moved, 1 + 1e-14 * rng.standard_normal((n, n)), 1.0)


def constant(rng: Generator, n: int) -> np.ndarray:
    """Rank one, with sums whose roundings all point the same way."""
    return np.full((n, n), rng.random())


def near_tolerance(rng: Generator, n: int) -> np.ndarray:
    """Singular values within 1e-9 to 1e-1 of 1e-8 on both sides, and large ones."""
    close = 1e-8 * (1 + rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-9, -1, n))
    return _with_values(rng, np.where(rng.random(n) < 0.5, close, 10.0 ** rng.uniform(-6, 0, n)))


def repeated_values(rng: Generator, n: int) -> np.ndarray:
    """A scaled reflection: every singular value is the same."""
    return 10.0 ** rng.uniform(-9, 3) * _orthogonal(rng, n)


def denormal(rng: Generator, n: int) -> np.ndarray:
    """Entries down to the smallest numbers there are."""
    return 10.0 ** rng.uniform(-323, -290) * rng.standard_normal((n, n))


def huge(rng: Generator, n: int) -> np.ndarray:
    """Entries whose squares overflow."""
    return 10.0 ** rng.uniform(150, 290) * rng.standard_normal((n, n))


def rectangle(rng: Generator, n: int) -> np.ndarray:
    """Far more columns than rows, or the other way round."""
    matrix = near_hardmax(rng, n)[: max(1, n // 4)]
    return matrix if rng.random() < 0.5 else matrix.T


def zero(_: Generator, n: int) -> np.ndarray:
    """Nothing at all."""
    return np.zeros((n, n))


def _head(rng: Generator, n: int, scale: float) -> np.ndarray:
    width, head_dim = 48, int(rng.integers(1, 17))
    x = rng.standard_normal((n, width))
    q, k = (x @ rng.standard_normal((width, head_dim)) for _ in range(2))
    return scale * q @ k.T / math.sqrt(head_dim)


def soft_head(rng: Generator, n: int) -> np.ndarray:
    """Logits of a random head from soft to sharp."""
    return _head(rng, n, 10.0 ** rng.uniform(-2, 0.5))


def huge_logits(rng: Generator, n: int) -> np.ndarray:
    """Logits up to 1e12."""
    return _head(rng, n, 10.0 ** rng.uniform(2, 10))


def causal_head(rng: Generator, n: int) -> np.ndarray:
    """A random head behind a causal mask."""
    return np.where(np.tri(n, dtype=bool), soft_head(rng, n), -np.inf)


def masked_head(rng: Generator, n: int) -> np.ndarray:
    """A random head with random masked entries; each row keeps one."""
    mask = (rng.random((n, n)) < 0.5) | np.eye(n, dtype=bool)
    return np.where(mask, soft_head(rng, n), -np.inf)


def tied_logits(rng: Generator, n: int) -> np.ndarray:
    """Whole numbers, so that many logits of a row are equal."""
    return rng.integers(0, 4, (n, n)) * float(rng.choice([1.0, 8.0, 40.0]))


def just_dropped(rng: Generator, n: int) -> np.ndarray:
    """One large logit a row; all others just below what near-hardmax keeps at ε = 1."""
    m = int(rng.choice([n, 4 * n, 16 * n]))
    reach = math.log(math.sqrt(n * m) / 1e-4) + 10.0 ** rng.uniform(-6, -1)
    logits = np.full((n, m), -reach)
    logits[np.arange(n), rng.permutation(m)[:n]] = 0
    return logits


MATRICES: dict[str, Family] = {
    family.__name__: family
    for family in (
        *(hardmax, saturated, near_hardmax, clusters, kahan, hilbert, toeplitz, graded, duplicates),
        *(constant, near_tolerance, repeated_values, denormal, huge, rectangle, zero),
    )
}
LOGITS: dict[str, Family] = {
    family.__name__: family
    for family in (soft_head, huge_logits, causal_head, masked_head, tied_logits, just_dropped)
}


def tolerances(rng: Generator, values: np.ndarray, count: int) -> Iterator[float]:
    """Tolerances at singular values, beside them, and far from everything.

    Args:
        rng: The source of choices.
        values: Approximate singular values of the matrix.
        count: How many tolerances.

    Yields:
        Positive finite numbers.
    """
    for _ in range(count):
        kind, at = rng.random(), float(rng.choice(values))
        if kind < 0.15:
            epsilon = at
        elif kind < 0.65:
            epsilon = at * (1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-15, -1))
        elif kind < 0.75:
            epsilon = float(rng.choice([1.0, math.sqrt(2.0), 2.0, 1e-8]))
        elif kind < 0.9:
            epsilon = 10.0 ** rng.uniform(-40, 1)
        else:
            epsilon = float(values.max()) * 10.0 ** rng.uniform(-18, 1)
        if math.isfinite(epsilon) and epsilon > 0:
            yield epsilon
