"""Does the band of an advised curve cover the mean of twenty further seeds?

    python benchmarks/bench_advice_band.py    # some minutes on one core

For each kind of tokens and each start a pool of seeds is measured once. A repeat draws seeds from
it without replacement, adds them until the band is narrow, as ``headwise advise`` does, and looks
whether the mean of twenty others lies inside, at every head dimension. Where sequences differ so
much that seeds take more of them, a second pool has seeds of that size. Writes
benchmarks/records/advice_band_cpu_202611.json and .md.
"""

from __future__ import annotations

import torch

from headwise.advice.curves import (
    ASKED,
    FURTHER,
    HALF_WIDTH,
    MOST,
    MOST_LARGE,
    Start,
    band,
    head_dim_grid,
    more_sequences,
    settled_rows,
    shrinking,
)
from headwise.advice.evidence import MOST_HEAD_DIM, ratios_of_seed
from headwise.advice.tokens.source import Reading, read_tokens
from headwise.advice.tokens.token_set import TokenSet, token_set
from headwise.randomness import stream, stream_seed
from recording import RECORDS, markdown_table, provenance, write_record

POOL, REPEATS, SEED = 400, 2000, 11


def token_kinds() -> dict[str, TokenSet]:
    """The default, Gaussian vectors, and ids, each short enough for a pool of hundreds."""
    gaussian = torch.randn(64, 32, 24, generator=stream(SEED, "vectors"), dtype=torch.float64)
    ids = torch.randint(200, (64, 48), generator=stream(SEED, "ids"))
    padded = ids + 1
    ends = torch.randint(2, 49, (64, 1), generator=stream(SEED, "ends"))
    padded[torch.arange(48) >= ends] = 0
    return {
        "digits": read_tokens("digits", Reading()),
        "gaussian vectors": token_set(gaussian, 48),
        "ids": token_set(ids, 64),
        "padded ids": token_set(padded, 64),
    }


def one_repeat(
    pools: list[torch.Tensor], length: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """The seeds a band was made of, and twenty others of the same size."""
    used, others = from_pool(pools[0], length, generator, ask=len(pools) > 1)
    wide = float(band(used, length)[1].max()) > HALF_WIDTH
    return (
        from_pool(pools[1], length, generator, MOST_LARGE) if wide and pools[1:] else (used, others)
    )


def from_pool(
    pool: torch.Tensor, length: int, generator: torch.Generator, most: int = MOST, ask: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Seeds from a pool until the band is narrow, and twenty that were not among them."""
    rows = pool[torch.randperm(len(pool), generator=generator)[: MOST + FURTHER]]
    return settled_rows(
        lambda numbers: rows[numbers.start : numbers.stop], length, most, ask
    ), rows[MOST:]


def covered(pools: list[torch.Tensor], length: int) -> dict[str, float | int]:
    """Coverage over repeats at the worst head dimension, and what the bands were like."""
    generator = stream(SEED, "repeats")
    inside = torch.zeros(pools[0].shape[1], dtype=torch.float64)
    widest, most, seeds_used = 0.0, 0, 0
    for _ in range(REPEATS):
        used, others = one_repeat(pools, length, generator)
        mean, half = band(used, length)
        inside += (others.mean(0) - mean).abs() <= half
        widest, most = max(widest, float(half.max())), max(most, len(used))
        seeds_used += len(used)
    return {
        "least_coverage": float(inside.min()) / REPEATS,
        "mean_coverage": float(inside.mean()) / REPEATS,
        "widest_half_width": widest,
        "mean_seeds": seeds_used / REPEATS,
        "most_seeds": most,
    }


def pool_of(tokens: TokenSet, start: Start, dims: tuple[int, ...], few: int | None = None):
    """Hundreds of seeds, each over so many sequences."""
    seeds = [stream_seed(SEED, start, number) for number in range(POOL)]
    return torch.stack([ratios_of_seed(tokens, start, dims, seed, few=few) for seed in seeds])


def main() -> None:
    """Every kind and start, as a record and as a table."""
    rows = []
    for name, tokens in token_kinds().items():
        dims = head_dim_grid(min(tokens.width, MOST_HEAD_DIM))
        for start in ("model", "paper"):
            pools = [pool_of(tokens, start, dims)]
            half = float(band(pools[0][:ASKED], tokens.length)[1].max())
            if half * shrinking(ASKED, MOST) > 0.8 * HALF_WIDTH:  # some repeats will need it
                pools.append(pool_of(tokens, start, dims, more_sequences(half, tokens.length)))
            rows.append({"tokens": name, "start": start, **covered(pools, tokens.length)})
            print(rows[-1], flush=True)
    asked = {"pool": POOL, "repeats": REPEATS, "half_width": HALF_WIDTH, "further": FURTHER}
    record = {"provenance": provenance("cpu", "float64", SEED) | asked, "rows": rows}
    write_record(RECORDS, "advice_band_cpu", record, markdown_table(rows))


if __name__ == "__main__":
    main()
