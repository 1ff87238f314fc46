"""Does the band of an advised curve cover the mean of twenty further seeds?

    python benchmarks/bench_advice_band.py    # some minutes on one core

For each kind of tokens and each start a pool of seeds is measured once. A repeat draws seeds from
it without replacement, adds them until the band is narrow, as ``headwise advise`` does, and looks
whether the mean of twenty others lies inside, at every head dimension. Writes
benchmarks/records/advice_band_cpu_202611.json and .md.
"""

from __future__ import annotations

import torch

from headwise.advice.curves import head_dim_grid
from headwise.advice.embedding import TokenSet, token_set
from headwise.advice.measuring import (
    FURTHER,
    HALF_WIDTH,
    MOST,
    MOST_HEAD_DIM,
    ratios_of_seed,
    settled_band,
)
from headwise.advice.sources import Reading, tokens_from
from headwise.randomness import stream, stream_seed
from recording import RECORDS, markdown_table, provenance, write_record

POOL, REPEATS, SEED = 400, 2000, 11


def token_kinds() -> dict[str, TokenSet]:
    """The default, Gaussian vectors, and ids, each short enough for a pool of hundreds."""
    gaussian = torch.randn(64, 32, 24, generator=stream(SEED, "vectors"), dtype=torch.float64)
    ids = torch.randint(200, (64, 48), generator=stream(SEED, "ids"))
    return {
        "digits": tokens_from("digits", Reading()),
        "gaussian vectors": token_set(gaussian, 48),
        "ids": token_set(ids, 64),
    }


def covered(pool: torch.Tensor, length: int) -> dict[str, float | int]:
    """Coverage over repeats at the worst head dimension, and what the bands were like."""
    generator = stream(SEED, "repeats")
    inside = torch.zeros(pool.shape[1], dtype=torch.float64)
    widest, most, seeds_used = 0.0, 0, 0
    for _ in range(REPEATS):
        rows = pool[torch.randperm(len(pool), generator=generator)[: MOST + FURTHER]]
        mean, half, seeds = settled_band(lambda number, rows=rows: rows[number], length)
        inside += (rows[MOST:].mean(0) - mean).abs() <= half
        widest, most = max(widest, float(half.max())), max(most, seeds)
        seeds_used += seeds
    return {
        "least_coverage": float(inside.min()) / REPEATS,
        "mean_coverage": float(inside.mean()) / REPEATS,
        "widest_half_width": widest,
        "mean_seeds": seeds_used / REPEATS,
        "most_seeds": most,
    }


def main() -> None:
    """Every kind and start, as a record and as a table."""
    rows = []
    for name, tokens in token_kinds().items():
        dims = head_dim_grid(min(tokens.width, MOST_HEAD_DIM))
        for start in ("model", "paper"):
            seeds = [stream_seed(SEED, start, number) for number in range(POOL)]
            pool = torch.stack([ratios_of_seed(tokens, start, dims, seed) for seed in seeds])
            rows.append({"tokens": name, "start": start, **covered(pool, tokens.length)})
            print(rows[-1], flush=True)
    asked = {"pool": POOL, "repeats": REPEATS, "half_width": HALF_WIDTH, "further": FURTHER}
    record = {"provenance": provenance("cpu", "float64", SEED) | asked, "rows": rows}
    write_record(RECORDS, "advice_band_cpu", record, markdown_table(rows))


if __name__ == "__main__":
    main()
