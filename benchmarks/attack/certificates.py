"""Attack the certified counts: every method against integer arithmetic, on matrices that hurt.

Run `python -m benchmarks.attack.certificates --minutes 3`. With `--aim deflation` or `--aim
near-hardmax` the matrices are those of `remainders`, up to `--largest`; with `--aim pairs` headwise
is given the queries and keys of `pairs`. A count is wrong when the
exact number of singular values lies outside its interval, or when δ is no finite number while the
interval claims to know something. The exit code is 1 if any count is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.special
import torch
from benchmarks.attack.matrices import LOGITS, MATRICES, tolerances
from benchmarks.attack.oracle import clear_count, exact_count, exact_softmax_count
from benchmarks.attack.pairs import Pair
from benchmarks.attack.remainders import Remainder

from headwise import native
from headwise.attention import AttentionView
from headwise.errors import BadInputError
from headwise.spectra import LogWeights, count, measure
from headwise.spectra.counting import SMALLEST_PLAIN
from headwise.spectra.deflation import ROUNDS, count_by_deflation

#: Approximate singular values are believed when ε is this many times √n·u·σ₁ away from them.
BELIEF = 1e4

#: Tolerances tried on each matrix.
TOLERANCES = 4

#: A device that has failed fails at every call; a search gives up after this many failures.
MOST_FAILURES = 100

#: What is asked about matrices that bend the bounds of one method.
AIMED = {
    "deflation": ("deflation", "deflation once", "inertia", "svd"),
    "near-hardmax": ("near-hardmax", "near-hardmax without machine code", "cheapest", "deflation"),
    "pairs": (
        *("cheapest", "near-hardmax", "near-hardmax without machine code"),
        *("dense", "svd", "inertia", "measure"),
    ),
}

#: Which matrices are tried: every family, or those made for one method.
AIMS = ("all", *AIMED)

Source = torch.Tensor | LogWeights | AttentionView

#: What has a lower and an upper end and a δ; None if the method does not apply.
Method = Callable[[Source, float], Any]


@dataclass(frozen=True)
class Wrong:
    """A count that the exact answer contradicts, and how to make it again."""

    family: str
    seed: int
    method: str
    epsilon: float
    truth: int
    low: int
    high: int
    delta: float


@dataclass(frozen=True, eq=False)
class Target:
    """One matrix, or the softmax of one array of logits."""

    family: str
    seed: int
    given: np.ndarray
    softmax: bool
    aimed: Remainder | None = None

    @property
    def most(self) -> int:
        """The largest count that there can be."""
        return min(self.given.shape)

    def tolerances(self, values: np.ndarray) -> Iterable[float]:
        """Where to count, given approximate singular values."""
        rng = np.random.default_rng([self.seed, 1])
        return (tolerances if self.aimed is None else self.aimed.tolerances)(
            rng, values, TOLERANCES
        )

    def source(self, device: str) -> Source:
        """What headwise is asked about."""
        values = torch.from_numpy(self.given).to(device)
        return LogWeights(values) if self.softmax else values

    def approximate_values(self) -> np.ndarray:
        """Singular values by LAPACK's gesvd, which headwise does not call."""
        matrix = scipy.special.softmax(self.given, -1) if self.softmax else self.given
        return scipy.linalg.svdvals(matrix, check_finite=False)

    def truth(self, epsilon: float, values: np.ndarray) -> int:
        """The exact count."""
        doubt = BELIEF * math.sqrt(max(self.given.shape)) * 2.0**-53 * float(values.max())
        known = clear_count(values, epsilon, doubt) if math.isfinite(doubt) and doubt else None
        if known is not None:
            return known
        return (exact_softmax_count if self.softmax else exact_count)(self.given, epsilon)


def target(seed: int, largest: int, aim: str = "all") -> Target | Pair:
    """The matrix with this number: family, size and entries all follow from it."""
    if aim == "pairs":
        return Pair.numbered(seed, largest)
    if aim != "all":
        aimed = Remainder.numbered(seed, largest, aim)
        return Target(aimed.family, seed, aimed.matrix, softmax=False, aimed=aimed)
    rng = np.random.default_rng(seed)
    families = {**MATRICES, **LOGITS}
    name = list(families)[seed % len(families)]
    n = int(rng.integers(1, largest + 1)) if rng.random() < 0.8 else int(rng.integers(1, 9))
    return Target(name, seed, np.ascontiguousarray(families[name](rng, n)), name in LOGITS)


def methods() -> dict[str, Method]:
    """Every way to a count, by name."""
    named = ("cheapest", "near-hardmax", "dense", "svd", "inertia")
    ways: dict[str, Method] = {
        name: lambda source, epsilon, m=name: count(source, epsilon, method=m) for name in named
    }
    return ways | {
        "near-hardmax without machine code": _by_arrays,
        "measure": lambda source, epsilon: measure(source, epsilon).rank,
        "deflation": _by_deflation,
        "deflation once": lambda source, epsilon: _by_deflation(source, epsilon, rounds=0),
        "in a batch": _in_a_batch,
        "strided": lambda source, epsilon: count(_changed(source, _strided), epsilon),
        "negated": lambda source, epsilon: count(_changed(source, _negated), epsilon),
        "float32": lambda source, epsilon: _rounded(source, epsilon, torch.float32),
        "float16": lambda source, epsilon: _rounded(source, epsilon, torch.float16),
    }


def _by_arrays(source: Source, epsilon: float) -> Any:
    with mock.patch.object(native, "library", lambda _: None):
        return count(source, epsilon, method="near-hardmax")


def _by_deflation(source: Source, epsilon: float, rounds: int = ROUNDS) -> Any:
    """Deflation itself, which small matrices do not reach, at tolerances that it is given."""
    if isinstance(source, LogWeights) or not SMALLEST_PLAIN <= epsilon <= 1 / SMALLEST_PLAIN:
        return None
    return count_by_deflation(source[None].clone(), epsilon, rounds=rounds)


def _with_a_sink(view: Source, epsilon: float) -> Any:
    """The count of a matrix whose own error is added to δ, as ``AttentionView.source`` asks."""
    assert isinstance(view, AttentionView)
    doubt, matrix = view.matrix_error().double(), view.source()
    found = count(matrix, epsilon)
    above, below = epsilon + float(doubt), epsilon - float(doubt)
    low = count(matrix, above).low
    high = count(matrix, below).high if below > 0 else torch.tensor(min(view.shape[-2:]))
    return SimpleNamespace(low=low, high=high, delta=found.delta + doubt)


def _in_a_batch(source: Source, epsilon: float) -> Any:
    """The second of three matrices, between others of the same shape."""
    found = count(
        _changed(source, lambda x: torch.stack([x.flip(0), x, 0 * x.nan_to_num(0)])), epsilon
    )
    return SimpleNamespace(low=found.low[1], high=found.high[1], delta=found.delta[1])


def _strided(values: torch.Tensor) -> torch.Tensor:
    """The same numbers, each followed by another one, stored by columns."""
    n, m = values.shape
    room = torch.full((2 * m, 3 * n), 7.0, dtype=values.dtype, device=values.device)
    view = room[1::2, 2::3].mT
    view.copy_(values)
    return view


def _negated(values: torch.Tensor) -> torch.Tensor:
    """The same numbers, kept in memory with the other sign."""
    return torch.complex(torch.zeros_like(values), -values).conj().imag


def _rounded(source: Source, epsilon: float, dtype: torch.dtype) -> Any:
    """A rounded matrix stands for every one that rounds to it; what overflows stands for none."""
    short = _changed(source, lambda x: x.to(dtype))
    values = short.values if isinstance(short, LogWeights) else short
    lost = values.isinf() & ~(source.values if isinstance(source, LogWeights) else source).isinf()
    return None if bool(lost.any()) else count(short, epsilon)


def _changed(source: Source, change: Callable[[torch.Tensor], torch.Tensor]) -> Source:
    return LogWeights(change(source.values)) if isinstance(source, LogWeights) else change(source)


def is_wrong(low: int, high: int, delta: float, truth: int, most: int) -> bool:
    """Whether an interval misses the truth, or rests on nothing."""
    if not low <= truth <= high:
        return True
    return not (math.isfinite(delta) and delta >= 0) and (low, high) != (0, most)


def attack(one: Target | Pair, device: str, checked: Counter[str]) -> Iterator[Wrong]:
    """Ask every method at several tolerances; yield what is wrong."""
    values = one.approximate_values()
    source = one.source(device)
    ways = _asked(one)
    for epsilon in one.tolerances(values):
        truth = one.truth(epsilon, values)
        for name, ask in ways.items():
            try:
                found = ask(source, epsilon)
            except BadInputError as refused:
                if "one-hot" not in str(refused):
                    raise
                continue
            if found is None:
                continue
            low, high, delta = int(found.low), int(found.high), float(found.delta)
            checked[name] += 1
            checked["exact"] += low == high
            if is_wrong(low, high, delta, truth, one.most):
                yield Wrong(one.family, one.seed, name, epsilon, truth, low, high, delta)


def _asked(one: Target | Pair) -> dict[str, Method]:
    """The methods that are asked about a matrix."""
    ways = methods()
    if isinstance(one, Target) and one.aimed is None:
        return ways
    if isinstance(one, Pair) and one.sink is not None:
        return {"with a sink": _with_a_sink}
    aim = "pairs" if isinstance(one, Pair) or one.aimed is None else one.aimed.aim
    return {name: ways[name] for name in AIMED[aim]}


@dataclass
class Findings:
    """What a search checked, and everything that was wrong."""

    seed: int
    device: str
    aim: str = "all"
    matrices: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """The figures as they are recorded."""
        by_method = {name: count for name, count in self.checked.items() if name != "exact"}
        return {
            "matrices": self.matrices,
            "counts checked": sum(by_method.values()),
            "of them exact": self.checked["exact"],
            "wrong": len(self.wrong),
            "failed": len(self.failed),
            "by method": by_method,
            "wrong by method": dict(Counter(one.method for one in self.wrong)),
            "device": self.device,
            "seed": self.seed,
            "aim": self.aim,
        }


def search(found: Findings, largest: int, deadline: float, tell: Callable[[Any], None]) -> None:
    """Attack one matrix after another until the deadline; add what is seen to the findings.

    Args:
        found: Where to start, and where to add.
        largest: The side of the largest matrix.
        deadline: When to stop, by the monotonic clock.
        tell: Called at once with every wrong count and failure, and with None after each matrix.
    """
    while time.monotonic() < deadline and len(found.failed) < MOST_FAILURES:
        number = found.seed + found.matrices
        try:
            one = target(number, largest, found.aim)
            for wrong in attack(one, found.device, found.checked):
                found.wrong.append(wrong)
                tell({"wrong": {**asdict(wrong), "largest": largest}})
        # Any exception is a finding: it is kept with its seed, and the next matrix follows.
        except Exception as error:
            failure = {"seed": number, "largest": largest, "failure": repr(error)[:500]}
            found.failed.append(failure)
            tell({"failed": failure})
        found.matrices += 1
        tell(None)


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--largest", type=int, default=50, help="side of the largest matrix")
    parser.add_argument("--aim", choices=AIMS, default="all", help="which matrices")
    parser.add_argument("--every", type=float, help="print the figures so far every EVERY seconds")
    chosen = parser.parse_args()
    # Small matrices: a second thread would only wait for the first.
    torch.set_num_threads(1)
    found, told = Findings(chosen.seed, chosen.device, chosen.aim), time.monotonic()

    def tell(news: dict[str, Any] | None) -> None:
        nonlocal told
        if news is None and chosen.every and time.monotonic() >= told + chosen.every:
            told, news = time.monotonic(), {"so far": found.report()}
        if news is not None:
            print(json.dumps(news), flush=True)

    search(found, chosen.largest, told + 60 * chosen.minutes, tell)
    if chosen.every:
        print(json.dumps({"so far": found.report()}))
    else:
        print(json.dumps(found.report(), indent=1))
    raise SystemExit(1 if found.wrong or found.failed else 0)


if __name__ == "__main__":
    main()
