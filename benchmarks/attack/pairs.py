"""Queries and keys made to mislead a count: the products round, underflow, overflow and cancel.

The exact answer starts from the queries and keys themselves, so it also judges the bound on the
rounding of q·k/T, which counts of given logits never see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import mpmath
import numpy as np
import scipy.linalg
import scipy.special
import torch
from benchmarks.attack.matrices import tolerances
from benchmarks.attack.oracle import SPARE_BITS, clear_count, exact_count_of_weights

from headwise.attention import Additive, AttentionView, as_mask, logits
from headwise.spectra import LogWeights

Generator = np.random.Generator

#: Queries (n, d), keys (m, d) and the temperature.
Given = tuple[np.ndarray, np.ndarray, float]

#: Tolerances tried on each pair.
TOLERANCES = 4

#: Approximate singular values are believed when ε is this many times their error away from them.
BELIEF = 1e4


def _tokens(rng: Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    d = int(rng.integers(1, 17))
    q, k = (rng.standard_normal((n, d)) for _ in range(2))
    return q, k


def plain(rng: Generator, n: int) -> Given:
    """A random head from soft to sharp."""
    q, k = _tokens(rng, n)
    return 10.0 ** rng.uniform(-1, 2) * q, k, math.sqrt(q.shape[1])


def tiny(rng: Generator, n: int) -> Given:
    """Products that underflow, and a temperature that brings them back."""
    q, k = _tokens(rng, n)
    power = int(rng.integers(-537, -490))
    return np.ldexp(q, power), np.ldexp(k, power), math.ldexp(1.0, max(2 * power, -1074))


def lopsided(rng: Generator, n: int) -> Given:
    """Queries near the largest numbers and keys near the smallest, or the other way round."""
    q, k = _tokens(rng, n)
    power = int(rng.integers(900, 1015)) * int(rng.choice([-1, 1]))
    return np.ldexp(q, power), np.ldexp(k, -power), 1.0


def huge(rng: Generator, n: int) -> Given:
    """Products near the largest number, and a temperature of that size."""
    q, k = _tokens(rng, n)
    power = int(rng.integers(400, 505))
    return np.ldexp(q, power), np.ldexp(k, power), math.ldexp(1.0, 2 * power)


def cancelling(rng: Generator, n: int) -> Given:
    """Large terms that cancel: what is left of q·k are its last digits."""
    q, k = _tokens(rng, n)
    large = 10.0 ** rng.uniform(2, 9)
    a, b = (np.round(large * rng.standard_normal((n, 1))) for _ in range(2))
    return np.hstack([q, a, a]), np.hstack([k, b, -b]), 1.0


def graded(rng: Generator, n: int) -> Given:
    """Dimensions of very different size."""
    q, k = _tokens(rng, n)
    scale = 10.0 ** rng.uniform(-12, 3, q.shape[1])
    return q * scale, k, 1.0


def repeated(rng: Generator, n: int) -> Given:
    """Tokens that occur several times, some moved in their last digits."""
    q, k = _tokens(rng, n)
    k = k[rng.integers(0, n, n)] * np.where(rng.random((n, 1)) < 0.3, 1 + 1e-15, 1.0)
    return 10.0 ** rng.uniform(-1, 2) * q[rng.integers(0, n, n)], k, math.sqrt(q.shape[1])


def short(rng: Generator, n: int) -> Given:
    """Numbers that float32 and bfloat16 hold exactly: their rounding hides many other pairs."""
    q, k, temperature = plain(rng, n)
    store = torch.bfloat16 if rng.random() < 0.5 else torch.float32
    both = (torch.from_numpy(part).to(store).double().numpy() for part in (q, k))
    return *both, temperature


def rounded(rng: Generator, n: int) -> Given:
    """Numbers that are stored in fewer bits, or lost there; the count is of the whole ones."""
    q, k, temperature = plain(rng, n)
    return q * 10.0 ** rng.uniform(-6, 0), k * 10.0 ** rng.uniform(-4, 1), temperature


def overflowing(rng: Generator, n: int) -> Given:
    """Products on both sides of the most negative number, and a temperature of that size."""
    q, k = _tokens(rng, n)
    k[0] /= 1e3  # what overflows to +∞ is refused, and so is a row of −∞
    power = int(rng.integers(1020, 1024))
    return np.ldexp(abs(q), 511), np.ldexp(-abs(k), power - 511), math.ldexp(1.0, power)


def oblong(rng: Generator, n: int) -> Given:
    """More keys than queries, or fewer; one of either at times."""
    q, k, temperature = plain(rng, n)
    few = 1 if rng.random() < 0.2 else int(rng.integers(1, n + 1))
    return (q[:few], k, temperature) if rng.random() < 0.5 else (q, k[:few], temperature)


def capped(rng: Generator, n: int) -> Given:
    """Pairs whose logits get a softcap, far below them or far above."""
    q, k, temperature = plain(rng, n)
    return 10.0 ** rng.uniform(-2, 3) * q, k, temperature


def sunk(rng: Generator, n: int) -> Given:
    """Pairs of a layer with a sink: a logit that takes part in the softmax and is dropped."""
    return oblong(rng, n) if rng.random() < 0.5 else capped(rng, n)


def biased(rng: Generator, n: int) -> Given:
    """Pairs whose logits get biases; ``_biases`` draws them."""
    q, k, temperature = plain(rng, n)
    return 10.0 ** rng.uniform(-1, 12) * q, k, temperature


def _biases(rng: Generator, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """One bias that may be lost beside the logits, or several that cancel up to their rounding."""
    drawn = rng.standard_normal((4, *shape)) * 10.0 ** rng.uniform(-2, 16)
    if rng.random() < 0.4:
        return (drawn[0],)
    large = np.round(drawn[1])
    return (large, rng.standard_normal(shape) - large, *drawn[2 : int(rng.integers(2, 4))] / 1e9)


PAIRS: dict[str, Callable[[Generator, int], Given]] = {
    family.__name__: family
    for family in (
        *(plain, tiny, lopsided, huge, cancelling, graded, repeated, short, biased),
        *(rounded, overflowing, oblong, capped, sunk),
    )
}


@dataclass(frozen=True, eq=False)
class Pair:
    """Queries and keys, what to divide by, what is added, and whether later keys are hidden."""

    family: str
    seed: int
    queries: np.ndarray
    keys: np.ndarray
    temperature: float
    causal: bool
    dtype: torch.dtype
    biases: tuple[np.ndarray, ...] = ()
    softcap: float | None = None
    sink: float | None = None

    @classmethod
    def numbered(cls, seed: int, largest: int) -> Pair:
        """The pair with this number: family, size and entries all follow from it."""
        rng = np.random.default_rng([seed, 2])
        name = list(PAIRS)[seed % len(PAIRS)]
        queries, keys, temperature = PAIRS[name](rng, int(rng.integers(1, largest + 1)))
        dtype = _narrowest(queries, keys) if name == "short" else torch.float64
        causal = bool(rng.random() < 0.3)
        biases = _biases(rng, (len(queries), len(keys))) if name == "biased" else ()
        found = cls(name, seed, queries, keys, temperature, causal, dtype, biases)
        match name:
            case "rounded":
                short = (torch.float32, torch.bfloat16, torch.float16)
                return replace(found, dtype=short[int(rng.integers(3))])
            case "capped":
                return replace(found, softcap=10.0 ** rng.uniform(-3, 4))
            case "sunk":
                return replace(found, sink=10.0 ** rng.uniform(-2, 2) * rng.standard_normal())
        return found

    @property
    def most(self) -> int:
        """The largest count that there can be."""
        return min(len(self.queries), len(self.keys))

    def source(self, device: str) -> LogWeights | AttentionView:
        """What headwise is asked about."""
        q, k = (torch.from_numpy(x).to(device, self.dtype) for x in (self.queries, self.keys))
        mask = as_mask("causal" if self.causal else "none")
        for bias in self.biases:
            mask = mask & Additive(torch.from_numpy(bias).to(device))
        if self.sink is None:
            return logits(q, k, temperature=self.temperature, mask=mask, softcap=self.softcap)
        sinks = torch.tensor([self.sink], dtype=torch.float64, device=device)
        return AttentionView(q[None, None], k[None, None], mask, self.temperature, sinks=sinks)

    @cached_property
    def exact_logits(self) -> np.ndarray:
        """q·k/T, capped, and the biases to ``SPARE_BITS`` bits, None where a key is hidden.

        A sink is the last column.
        """
        sink = () if self.sink is None else (mpmath.mpf(self.sink),)
        found = np.empty((len(self.queries), len(self.keys) + len(sink)), dtype=object)
        found[:, len(self.keys) :] = sink
        with mpmath.workprec(SPARE_BITS):
            q, k = (_numbers(part) for part in (self.queries, self.keys))
            below = mpmath.mpf(self.temperature)
            for i, j in np.ndindex(len(q), len(k)):
                hidden = self.causal and j > i
                added = (mpmath.mpf(float(bias[i, j])) for bias in self.biases)
                exact = mpmath.fdot(q[i], k[j]) / below
                if self.softcap is not None:
                    exact = self.softcap * mpmath.tanh(exact / self.softcap)
                found[i, j] = None if hidden else exact + mpmath.fsum(added)
        return found

    def approximate_values(self) -> np.ndarray:
        """Singular values by LAPACK's gesvd, which headwise does not call."""
        weights = scipy.special.softmax(self._rounded, -1)[:, : len(self.keys)]
        return scipy.linalg.svdvals(weights, check_finite=False)

    def tolerances(self, values: np.ndarray) -> Iterable[float]:
        """Where to count, given approximate singular values."""
        return tolerances(np.random.default_rng([self.seed, 1]), values, TOLERANCES)

    def truth(self, epsilon: float, values: np.ndarray) -> int:
        """The exact count."""
        reach = 1 + float(np.abs(self._rounded[np.isfinite(self._rounded)]).max())
        doubt = BELIEF * math.sqrt(max(self._rounded.shape)) * 2.0**-53 * reach
        known = clear_count(values, epsilon, doubt * float(values.max()))
        if known is not None:
            return known
        return exact_count_of_weights(self.exact_logits, epsilon, int(self.sink is not None))

    @cached_property
    def _rounded(self) -> np.ndarray:
        return np.array(
            [[-math.inf if x is None else float(x) for x in row] for row in self.exact_logits]
        )


def _numbers(part: np.ndarray) -> list[list[mpmath.mpf]]:
    return [[mpmath.mpf(float(x)) for x in row] for row in part]


def _narrowest(*parts: np.ndarray) -> torch.dtype:
    """The shortest type that holds these numbers exactly."""
    for dtype in (torch.bfloat16, torch.float32):
        if all(np.array_equal(torch.from_numpy(x).to(dtype).double().numpy(), x) for x in parts):
            return dtype
    return torch.float64
