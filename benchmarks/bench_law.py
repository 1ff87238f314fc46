"""Measure what the law claims: its speed, and its distance from simulation.

    python benchmarks/bench_law.py            # everything, some ten minutes on two cores
    python benchmarks/bench_law.py speed      # the two timings alone, put into the record

Writes benchmarks/records/law_cpu_202611.json; the figures of docs/theory.md draw from it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import time
from pathlib import Path

import torch

from headwise import __version__
from headwise.randomness import stream
from headwise.spectra import Absolute, Estimate, LogWeights, count
from headwise.theory.expected import expected_rank
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law_formula import law_share
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.neighbourhood import neighbourhood_ratio
from headwise.theory.simulated_heads import IndependentHead
from headwise.theory.softening import softmax_ratio

RECORD = Path(__file__).parent / "records" / "law_cpu_202611.json"
SEED = 2026


def best_of(times, work):
    """The shortest of several runs: what the work takes when nothing else interferes."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def speed():
    """One L(n, d_h), and a table over the whole range."""
    lengths = torch.logspace(math.log10(2), 12, 100, dtype=torch.float64).round().unsqueeze(-1)
    dims = torch.logspace(0, 5, 100, dtype=torch.float64).round()
    return {
        "one_value_seconds": best_of(50, lambda: law_share(1024, 64)),
        "table_100x100_seconds": best_of(5, lambda: law_share(lengths, dims)),
    }


def agreement():
    """L against plain simulation, d_h ≥ 16 and n from 2⁵ to 2¹⁴."""
    rows = []
    for power in range(5, 15):
        for dim in (16, 32, 64, 128):
            n = 2**power
            draws = max(3, min(3000, 2**16 // n))
            seen = simulate_ratio(IndependentHead(n, dim), draws, SEED + power)
            laws = {"law": float(law_share(n, dim)), "corrected": corrected_law(n, dim)}
            rows.append(row(n, dim, seen, **laws))
            print(rows[-1], flush=True)
    return rows


def small_dims():
    """The automatic answer below d_h = 16 against plain simulation of another seed."""
    rows = []
    for n in (8, 64, 512, 4096):
        for dim in (1, 2, 3, 5, 8, 12, 15):
            draws = max(4, min(4000, 2**16 // n))
            seen = simulate_ratio(IndependentHead(n, dim), draws, SEED)
            found = expected_rank(n, dim)
            rows.append(row(n, dim, seen, predicted=found.ratio, method=found.method))
            print(rows[-1], flush=True)
    return rows


def long_sequences():
    """L against simulation around single keys, where nothing else can simulate."""
    rows = []
    for n, dim in [(2**17, 16), (2**20, 32), (10**9, 32), (10**9, 64), (10**12, 64)]:
        seen = neighbourhood_ratio(n, dim, draws=3000, seed=SEED)
        rows.append(row(n, dim, seen, law=float(law_share(n, dim))))
        print(rows[-1], flush=True)
    return rows


def softmax():
    """The softmax predictor against singular values, inside its range and outside it."""
    rows = []
    for epsilon in (1e-8, 1e-4):
        for n, dim in ((64, 16), (200, 16), (200, 64), (200, 256), (400, 64)):
            for reach in (0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6):
                heat = reach * math.sqrt(dim) / math.log(1 / epsilon)
                seen = softmax_simulated(n, dim, heat, epsilon, draws=8000 // n)
                found = softmax_ratio(n, dim, heat, epsilon)
                more = {"temperature": heat, "epsilon": epsilon, "kept": found.kept}
                more |= {"predicted": found.ratio, "valid": found.valid}
                rows.append(row(n, dim, seen, **more))
    return rows


def softmax_simulated(n, dim, heat, epsilon, draws):
    """ε-rank over n of random softmax heads, by certified counts."""
    generator, ratios = stream(SEED, "softmax", n, dim), []
    for _ in range(draws):
        queries = torch.randn(n, dim, generator=generator, dtype=torch.float64)
        keys = torch.randn(n, dim, generator=generator, dtype=torch.float64)
        found = count(LogWeights(queries @ keys.mT / heat), Absolute(epsilon))
        ratios.append(float((found.low + found.high).double().mean()) / (2 * n))
    return Estimate.of(torch.tensor(ratios))


def row(n, dim, seen, **more):
    """One line of the record."""
    simulated = {"simulated": seen.mean, "stderr": seen.stderr, "draws": seen.draws}
    return {"length": n, "head_dim": dim} | simulated | more


def summary(record):
    """The figures the claims are about."""
    law = record["agreement"]
    inside = [r for r in record["softmax"] if r["valid"]]
    outside = [r for r in record["softmax"] if not r["valid"]]
    return {
        "law_minus_simulation_largest": max(r["law"] - r["simulated"] for r in law),
        "corrected_largest_difference": max(abs(r["corrected"] - r["simulated"]) for r in law),
        "law_below_simulation_in_stderr": max(
            (r["simulated"] - r["law"]) / r["stderr"] for r in law
        ),
        "small_dims_largest_difference": max(
            abs(r["predicted"] - r["simulated"]) for r in record["small_dims"]
        ),
        "softmax_largest_inside": max(abs(r["predicted"] - r["simulated"]) for r in inside),
        "softmax_largest_outside": max(abs(r["predicted"] - r["simulated"]) for r in outside),
    }


def main():
    """Run all parts and write the record."""
    record = {
        "command": "python benchmarks/bench_law.py",
        "version": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seed": SEED,
        "dtype": "float64",
        "device": f"cpu, {os.cpu_count()} cores, {platform.machine()}",
        "speed": speed(),
    }
    print(record["speed"])
    if sys.argv[1:] == ["speed"]:
        kept = json.loads(RECORD.read_text(encoding="utf-8"))
        write(kept | {"speed": record["speed"]})
        return
    for part in (agreement, small_dims, long_sequences, softmax):
        record[part.__name__] = part()
    record["summary"] = summary(record)
    print(record["summary"])
    write(record)


def write(record):
    """Keep the record where the documentation and the tests find it."""
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
