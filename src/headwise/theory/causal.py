"""The finite law under a causal mask: row i picks among the first i keys.

Column j is used unless every row from j on picks another key. Given the norm ρ of key j, row i
picks it with probability p_i(ρ), the odds among i keys (``picking``), so

    C(n, d_h) = 1 − (1/n) Σ_j E_ρ Π_{i=j}^n (1 − p_i(ρ)).

As in the law without a mask, the odds given all keys fluctuate about p_i(ρ); what that does is
small from d_h = 16 on, and for less ``ready_ratio`` has simulations. For d_h → ∞ every p_i is 1/i
and C is (n + 1) / 2n.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from headwise.errors import InaccurateError
from headwise.theory.number_types import Wholes, cells
from headwise.theory.numerics import rule_between
from headwise.theory.picking import CHECK, norm_density, odds, score_at

#: Rows are summed one by one up to here, and from here on by a spline in log i.
_ONE_BY_ONE = 32

#: Knots of that spline per unit of log i.
_KNOTS = 6

#: Nodes of the key's norm: in few dimensions norms differ more, and among many keys.
_NORMS, _NORMS_OF_FEW, _NORMS_OF_MANY = 96, 128, 256
_FEW_DIMS, _MANY_KEYS = 16, 2**17

#: The shares of keys that are shorter, or longer, than those looked at.
_BOTTOM_NORM, _TOP_NORM, _TOP_SCORE = 1e-16, 1e-13, 1e-12


def causal_share(length: Wholes, head_dim: Wholes) -> np.ndarray:
    """C(n, d_h) for one or many lengths and head dimensions, broadcast against each other."""
    lengths, dims = cells(length, head_dim, least=1)
    pairs = zip(lengths.ravel().tolist(), dims.ravel().tolist(), strict=True)
    found = [1.0 if n == 1 else _share(n, d) for n, d in pairs]
    return np.array(found, dtype=float).reshape(lengths.shape)


def _share(n: float, d: float) -> float:
    norm, weight = _norm_rule(n, d)
    rows = _steps(n)
    never = _Sums(rows, -np.log1p(-_odds(norm, weight, rows, d)))

    def used(columns: np.ndarray) -> np.ndarray:
        """The chance that each of these columns is used by some row from its own on."""
        return -np.expm1(-never.to_the_end(columns)) @ weight

    # Early columns change with log j, late ones with the log of how many rows are left.
    half = n // 2
    early, late = _steps(half), _steps(n - half)
    return (_Sums(early, used(early)).whole() + _Sums(late, used(n + 1 - late)).whole()) / n


def _norm_rule(n: float, d: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for averages over a key's norm, from the shortest to those n keys have."""
    low = math.sqrt(2 * special.gammaincinv(d / 2, _BOTTOM_NORM))
    others = special.chdtri(d - 1, _TOP_NORM) if d > 1 else 0.0
    high = math.sqrt(float(score_at(_TOP_SCORE, n)) ** 2 + others)
    of_few = _NORMS_OF_FEW if n <= _MANY_KEYS else _NORMS_OF_MANY
    norm, step = rule_between(low, high, of_few if d < _FEW_DIMS else _NORMS)
    return norm, norm_density(norm, np.asarray(d)) * step


def _steps(last: float) -> np.ndarray:
    """Every number up to ``_ONE_BY_ONE``, then knots even in their logarithm up to the last."""
    first = np.arange(1.0, min(last, _ONE_BY_ONE) + 1)
    if last <= _ONE_BY_ONE:
        return first
    span = math.log(last / _ONE_BY_ONE)
    knots = np.linspace(0, span, max(4, math.ceil(_KNOTS * span)) + 1)[1:]
    return np.concatenate([first, _ONE_BY_ONE * np.exp(knots)])


def _odds(norm: np.ndarray, weight: np.ndarray, rows: np.ndarray, d: float) -> np.ndarray:
    """p_i(ρ) (rows, norms), checked by i·E[p_i] = 1, and then made to have just that mean."""
    # The angles of short keys among many are empty windows: 0/0, and no odds at all.
    with np.errstate(all="ignore"):
        later = odds(
            np.tile(norm, (len(rows) - 1, 1)), rows[1:, None], np.full((len(rows) - 1, 1), d)
        )
    found = np.vstack([np.ones_like(norm), np.nan_to_num(later)])
    sums = rows[1:] * (found[1:] @ weight)
    off = np.abs(sums - 1)
    if not off.max(initial=0.0) <= CHECK:
        worst = int(off.argmax())
        raise InaccurateError(
            f"the quadrature at row {rows[1 + worst]:.0f}, head dimension {d:.0f} gives "
            f"i·E[p] = {1 + off[worst]:.8f} instead of 1",
            hint="simulate this point with simulate_ratio(..., mask=Causal()), and report it",
        )
    # What the angles' quadrature misses is enough to lift two keys above their barrier.
    found[1:] /= sums[:, None]
    return found.clip(max=1 - 1e-16)


class _Sums:
    """Sums over whole numbers of values known at ``_steps``, by a spline between knots."""

    def __init__(self, steps: np.ndarray, values: np.ndarray) -> None:
        self.last, self.end = steps[-1], values[-1]
        split = min(len(steps), _ONE_BY_ONE)
        self.low, knots, shown = values[:split], steps[split - 1 :], values[split - 1 :]
        self.spline = None
        if len(knots) > 1:
            # Late: it takes a tenth of a second, which those who ask for no mask need not wait.
            from scipy.interpolate import CubicSpline

            # In the logarithm x of a number i the integrand is i · value, for di = i dx.
            scaled = np.stack([shown, shown * knots.reshape(-1, *[1] * (shown.ndim - 1))])
            self.spline = CubicSpline(np.log(knots), scaled, axis=1)
            self.integral = self.spline.antiderivative()

    def to_the_end(self, starts: np.ndarray) -> np.ndarray:
        """The sums from each start, itself included, to the last number."""
        early = starts <= len(self.low)
        tail = self._beyond(starts[~early])
        first = np.cumsum(self.low[::-1], axis=0)[::-1]
        if self.spline is not None:
            first = first + self._beyond(np.array([float(len(self.low))])) - self.low[-1]
        return np.concatenate([first[starts[early].astype(int) - 1], tail])[_place(early)]

    def whole(self) -> float:
        """The sum over all numbers from one to the last."""
        return float(self.to_the_end(np.array([1.0]))[0])

    def _beyond(self, starts: np.ndarray) -> np.ndarray:
        """The same among the knots, by Euler and Maclaurin: the integral and half of both ends."""
        if self.spline is None or not len(starts):
            return np.empty((0, *self.low.shape[1:]))
        x, end = np.log(starts), math.log(self.last)
        area = self.integral(end)[1] - self.integral(x)[1]
        return area + (self.spline(x)[0] + self.end) / 2


def _place(first: np.ndarray) -> np.ndarray:
    """Where each entry went when those marked were put before the others."""
    order = np.argsort(~first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
