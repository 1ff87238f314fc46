"""Count singular values in integer arithmetic: an answer that no rounding can change.

The matrix is scaled to integers. The number of σ ≥ ε is then the number of eigenvalues of
AᵀA − ε² that are not negative, read off the signs of the pivots of a symmetric elimination
(Sylvester). The elimination keeps hundreds of bits, so it decides gaps of a factor 1 ± 2⁻¹⁵⁰.
It shares no code with the methods that it judges.
"""

from __future__ import annotations

import math
from functools import lru_cache

import mpmath
import numpy as np

#: Bits kept below ε² (and, for softmax weights, below 1).
SPARE_BITS = 640

#: σ within this factor of ε is a tie: 1 − 2⁻¹⁵⁰.
TIE_BITS = 150


def exact_count(matrix: np.ndarray, epsilon: float) -> int:
    """How many singular values of a float64 matrix are at least ε; a tie counts.

    Args:
        matrix: One matrix, (n, m), in float64.
        epsilon: The tolerance.

    Returns:
        The count.

    >>> exact_count(np.diag([2.0, 1.0, 0.5]), 1.0)
    2
    """
    scaled, bits = _as_integers(matrix, math.frexp(epsilon)[1])
    return _count(_gram(scaled), bits, epsilon)


def exact_softmax_count(logits: np.ndarray, epsilon: float) -> int:
    """The same for the row-wise softmax of float64 logits, with exponentials to 190 digits.

    >>> exact_softmax_count(np.zeros((3, 3)), 1.0)
    1
    """
    return _count(_softmax_gram(logits.tobytes(), logits.shape), SPARE_BITS, epsilon)


def exact_count_of_weights(logits: np.ndarray, epsilon: float, dropped: int = 0) -> int:
    """The same for logits of any precision: numbers of mpmath, None for a hidden entry.

    The last ``dropped`` columns take part in the softmax, and not in the matrix.
    """
    return _count(_gram(_weights(logits)[:, : logits.shape[1] - dropped]), SPARE_BITS, epsilon)


@lru_cache(maxsize=1)
def _softmax_gram(content: bytes, shape: tuple[int, int]) -> np.ndarray:
    """The Gram matrix of softmax weights; one matrix is counted at several tolerances."""
    logits = np.empty(shape, dtype=object)
    for at, x in np.ndenumerate(np.frombuffer(content).reshape(shape)):
        logits[at] = None if x == -math.inf else mpmath.mpf(float(x))
    return _gram(_weights(logits))


def _weights(logits: np.ndarray) -> np.ndarray:
    """The row-wise softmax as integers, in units of 2^-SPARE_BITS."""
    weights = np.empty(logits.shape, dtype=object)
    with mpmath.workprec(SPARE_BITS):
        for row, out in zip(logits, weights, strict=True):
            top = max(x for x in row if x is not None)
            parts = [mpmath.mpf(0) if x is None else mpmath.exp(x - top) for x in row]
            total = mpmath.fsum(parts)
            out[:] = [int(mpmath.ldexp(part / total, SPARE_BITS)) for part in parts]
    return weights


def clear_count(values: np.ndarray, epsilon: float, doubt: float) -> int | None:
    """The count from approximate singular values, or None where one is too close to ε to tell."""
    if bool((np.abs(values - epsilon) <= doubt).any()):
        return None
    return int((values >= epsilon).sum())


def _as_integers(matrix: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Integers and the power of two that they were multiplied by.

    What lies SPARE_BITS below ε, which is about two to ``size``, cannot matter and is cut off.
    """
    fraction, exponent = np.frexp(matrix)
    used = exponent[matrix != 0]
    bits = min(53 - (int(used.min()) if used.size else 0), SPARE_BITS - size)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    scaled = np.empty(matrix.shape, dtype=object)
    for at, value in np.ndenumerate(mantissa):
        shift = int(exponent[at]) - 53 + bits
        scaled[at] = int(value) << shift if shift >= 0 else int(value) >> -shift
    return scaled, bits


def _gram(scaled: np.ndarray) -> np.ndarray:
    """The smaller of the products of a matrix with its transpose; only its upper triangle."""
    wide = scaled if scaled.shape[0] <= scaled.shape[1] else scaled.T
    gram = np.zeros((len(wide), len(wide)), dtype=object)
    for at, row in enumerate(wide):
        gram[at, at:] = wide[at:].dot(row)
    return gram


def _count(gram: np.ndarray, bits: int, epsilon: float) -> int:
    """How many σ of a matrix with this Gram matrix·2^-2bits are at least ε·(1 − 2^-TIE_BITS)."""
    mantissa, exponent = math.frexp(epsilon)
    shift = 2 * bits + 2 * (exponent - 53)  # ε² in units of the Gram matrix, as mantissa² · 2^shift
    room = max(0, SPARE_BITS - shift - 106)
    gram = gram * (1 << room)
    square = int(math.ldexp(mantissa, 53)) ** 2 << (shift + room)
    square -= square >> (TIE_BITS - 1)
    gram[np.diag_indices(len(gram))] -= square
    return len(gram) - _negative(gram)


def _negative(symmetric: np.ndarray) -> int:
    """Negative eigenvalues, by elimination with the largest diagonal entry as pivot.

    Only the upper triangle is read and kept. Each entry is off by at most two units a step.
    """
    rows = [list(row[at:]) for at, row in enumerate(symmetric)]
    negative = 0
    while rows:
        at = max(range(len(rows)), key=lambda i: abs(rows[i][0]))
        pivot = rows[at][0]
        if pivot == 0:
            raise ArithmeticError("every diagonal entry vanished: add SPARE_BITS")
        negative += pivot < 0
        column = [rows[i][at - i] for i in range(at)] + rows[at][1:]
        rest = [row[: at - i] + row[at - i + 1 :] for i, row in enumerate(rows[:at])]
        # One division an entry of the column instead of one an entry of the matrix.
        bits = max((abs(entry).bit_length() for entry in column), default=0)
        ratios = [(entry << bits) // pivot for entry in column]
        rows = [
            [entry - (factor * ratio >> bits) for entry, ratio in zip(row, ratios[i:], strict=True)]
            for i, (row, factor) in enumerate(zip(rest + rows[at + 1 :], column, strict=True))
        ]
    return negative
