"""The rank of attention matrices: headwise against torch, on the same logits.

Softmax and the choice of method are inside the timing; counts are compared before anything
is timed, and only certain ones count. Run `make bench-rank`, or with `--device cuda`;
`--only random` keeps the rows whose name begins so. The pass is the search for entries that
stand out, which every count begins with; it is part of headwise's time.

Contestants take turns, so each count of headwise follows a decomposition that may have taken
hundreds of milliseconds, and starts cold; that is the time held against the goal. Beside it
stands what one of several different batches takes when they are counted one after the other.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headwise.randomness import stream
from headwise.spectra import LogWeights, count
from headwise.spectra.dominant import dominant_weights
from recording import RECORDS, interleaved, markdown_table, provenance, write_record

WIDTH = 384
EPSILON = 1e-8
SEED = 0

#: Different batches that are counted in a row.
STREAM = 8


@dataclass(frozen=True)
class Work:
    """One row of the table: a batch of heads at initialisation."""

    name: str
    n: int
    batch: int
    head_dim: int
    scale: float
    goal: float


SOFT = 1 / math.sqrt(WIDTH)
CPU = [
    Work("random heads", 100, 32, 64, 1.0, 6),
    Work("random heads", 200, 32, 64, 1.0, 25),
    Work("random heads", 512, 32, 64, 1.0, 60),
    Work("random heads", 1024, 4, 64, 1.0, 60),
    Work("dense, all σ above ε", 2048, 1, 64, SOFT, 4),
    Work("dense, a quarter below ε", 2048, 1, 5, SOFT, 1.8),
]
CUDA = [
    Work(name, n, batch, head_dim, scale, goal)
    for name, head_dim, scale, goal in (
        ("random heads", 64, 1.0, 100),
        ("dense, all σ above ε", 64, SOFT, 1),
        ("dense, some below ε", 5, SOFT, 1),
    )
    for n, batch in ((100, 256), (200, 256), (512, 16), (4096, 1))
]


def logits(work: Work, device: str, number: int = 0) -> torch.Tensor:
    """q kᵀ/√d_h in float64 for inputs and weights N(0, 1), weights times the scale."""
    generator = stream(SEED, "bench", work.n, work.head_dim, *([number] if number else []))

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device)

    x = normal(work.batch, work.n, WIDTH)
    q = x @ (work.scale * normal(work.batch, WIDTH, work.head_dim))
    k = x @ (work.scale * normal(work.batch, WIDTH, work.head_dim))
    return q @ k.mT / math.sqrt(work.head_dim)


def contestants(source: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Three ways to the same counts, each from the logits."""
    return {
        "headwise": lambda: count(LogWeights(source)).values,
        "matrix_rank": lambda: torch.linalg.matrix_rank(torch.softmax(source, -1), atol=EPSILON),
        "svdvals": lambda: (torch.linalg.svdvals(torch.softmax(source, -1)) >= EPSILON).sum(-1),
    }


def in_a_row(work: Work, device: str, repeats: int) -> float:
    """Median seconds per batch when different batches are counted one after the other."""
    batches = [logits(work, device, number) for number in range(STREAM)]

    def all_of_them() -> None:
        for source in batches:
            count(LogWeights(source)).values  # noqa: B018  (refuses a count that is not certain)

    return interleaved({"stream": all_of_them}, repeats)["stream"] / STREAM


def measure(work: Work, device: str, repeats: int) -> dict[str, object]:
    """Compare the counts, then the times."""
    source = logits(work, device)
    rivals = contestants(source)
    answers = {name: rival().tolist() for name, rival in rivals.items()}
    agree = all(answers["headwise"] == answer for answer in answers.values())
    if not agree:
        raise SystemExit(f"counts differ for {work}: {answers}")
    rivals["pass"] = lambda: dominant_weights(LogWeights(source), EPSILON)
    seconds = interleaved(rivals, repeats)
    ours, streaming = seconds["headwise"], in_a_row(work, device, repeats)
    return {
        "work": work.name,
        "n": work.n,
        "batch": work.batch,
        "d_h": work.head_dim,
        "method": count(LogWeights(source)).methods[0],
        "headwise ms": 1e3 * ours,
        "of it the pass ms": 1e3 * seconds["pass"],
        "matrix_rank ms": 1e3 * seconds["matrix_rank"],
        "svdvals ms": 1e3 * seconds["svdvals"],
        "× matrix_rank": seconds["matrix_rank"] / ours,
        "× svdvals": seconds["svdvals"] / ours,
        f"one of {STREAM} batches in a row ms": 1e3 * streaming,
        f"× svdvals, {STREAM} batches in a row": seconds["svdvals"] / streaming,
        "goal ×": work.goal,
    }


def main() -> None:
    """Measure every row, print the table, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="rows whose name begins with this")
    parser.add_argument("--out", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    rows = []
    for work in CUDA if chosen.device == "cuda" else CPU:
        if not work.name.startswith(chosen.only):
            continue
        rows.append(measure(work, chosen.device, chosen.repeats))
        print(", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
                        for k, v in rows[-1].items()), flush=True)  # fmt: skip
    table = markdown_table(rows)
    print(table)
    record = {"provenance": provenance(chosen.device, "float64", SEED), "rows": rows}
    print("written to", write_record(chosen.out, f"rank_{chosen.device}", record, table).name)


if __name__ == "__main__":
    main()
