"""Attack the certified counts: every method against integer arithmetic, on matrices that hurt.

Run `python -m benchmarks.attack.certificates --minutes 3`. A count is wrong when the exact
number of singular values lies outside its interval, or when δ is no finite number while the
interval claims to know something. The exit code is 1 if any count is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.special
import torch
from benchmarks.attack.matrices import LOGITS, MATRICES, tolerances
from benchmarks.attack.oracle import clear_count, exact_count, exact_softmax_count

from headwise import native
from headwise.errors import BadInputError
from headwise.spectra import LogWeights, count, measure

#: Approximate singular values are believed when ε is this many times √n·u·σ₁ away from them.
BELIEF = 1e4

#: Tolerances tried on each matrix.
TOLERANCES = 4

Method = Callable[[torch.Tensor | LogWeights, float], object]


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

    def source(self, device: str) -> torch.Tensor | LogWeights:
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


def target(seed: int, largest: int) -> Target:
    """The matrix with this number: family, size and entries all follow from it."""
    rng = np.random.default_rng(seed)
    families = {**MATRICES, **LOGITS}
    name = list(families)[seed % len(families)]
    n = int(rng.integers(1, largest + 1)) if rng.random() < 0.8 else int(rng.integers(1, 9))
    return Target(name, seed, np.ascontiguousarray(families[name](rng, n)), name in LOGITS)


def methods() -> dict[str, Method]:
    """Every way to a count, by name."""

    def by_arrays(source: torch.Tensor | LogWeights, epsilon: float) -> object:
        with mock.patch.object(native, "library", lambda _: None):
            return count(source, epsilon, method="near-hardmax")

    named = ("cheapest", "near-hardmax", "dense", "svd", "inertia")
    ways: dict[str, Method] = {
        name: lambda source, epsilon, m=name: count(source, epsilon, method=m) for name in named
    }
    return ways | {
        "near-hardmax without machine code": by_arrays,
        "measure": lambda source, epsilon: measure(source, epsilon).rank,
    }


def is_wrong(low: int, high: int, delta: float, truth: int, most: int) -> bool:
    """Whether an interval misses the truth, or rests on nothing."""
    if not low <= truth <= high:
        return True
    return not (math.isfinite(delta) and delta >= 0) and (low, high) != (0, most)


def attack(one: Target, device: str, checked: Counter[str]) -> Iterator[Wrong]:
    """Ask every method at several tolerances; yield what is wrong."""
    rng = np.random.default_rng([one.seed, 1])
    values = one.approximate_values()
    source = one.source(device)
    for epsilon in tolerances(rng, values, TOLERANCES):
        truth = one.truth(epsilon, values)
        for name, ask in methods().items():
            try:
                found = ask(source, epsilon)
            except BadInputError as refused:
                if "one-hot" not in str(refused):
                    raise
                continue
            low, high, delta = int(found.low), int(found.high), float(found.delta)
            checked[name] += 1
            checked["exact"] += low == high
            if is_wrong(low, high, delta, truth, min(one.given.shape)):
                yield Wrong(one.family, one.seed, name, epsilon, truth, low, high, delta)


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--largest", type=int, default=50, help="side of the largest matrix")
    chosen = parser.parse_args()
    # Small matrices: a second thread would only wait for the first.
    torch.set_num_threads(1)
    deadline, seed = time.monotonic() + 60 * chosen.minutes, chosen.seed
    checked: Counter[str] = Counter()
    wrong: list[Wrong] = []
    while time.monotonic() < deadline:
        found = list(attack(target(seed, chosen.largest), chosen.device, checked))
        for one in found[:1]:
            print(json.dumps(asdict(one)), flush=True)
        wrong += found
        seed += 1
    exact = checked.pop("exact", 0)
    report = {
        "matrices": seed - chosen.seed,
        "counts checked": sum(checked.values()),
        "of them exact": exact,
        "wrong": len(wrong),
        "by method": dict(checked),
        "wrong by method": dict(Counter(one.method for one in wrong)),
        "device": chosen.device,
        "seed": chosen.seed,
    }
    print(json.dumps(report, indent=1))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
