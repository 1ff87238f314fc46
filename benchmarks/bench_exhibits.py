"""What exhibits cost: measuring Table 1 against plain SVD, and drawing 10,000 stored rows.

Table 1's measurement (lengths 100 and 200, width 960) is timed on a sample of its heads: counting
from the logits against `torch.linalg.matrix_rank` of the same softmax matrices in float64, in
turns, counts compared first. Drawing weights, projecting and multiplying to logits is timed by
itself. Totals weight each head dimension by the heads that the table has of it, and are compared
twice: counting alone, and the whole table as it is asked. Run `make bench-exhibits`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from headwise.data.synthetic import random_tokens
from headwise.experiments.first_projections import shared_beginning
from headwise.experiments.initial_stack import InitialLayer, StackShape
from headwise.experiments.measure_rank import MeasureRank
from headwise.papers.exhibit import Answers, Exhibit, Presentation, Scale, grid
from headwise.papers.kinds.rank_rows import pooled_by, rank_curve
from headwise.papers.pages import write_exhibits
from headwise.papers.rank2026.table_1 import HEAD_DIMS, TABLE_1, WIDTH
from headwise.papers.reproduction import Wanted, from_store
from headwise.randomness import stream
from headwise.report import Panel
from headwise.runs import Answer, Provenance, Spec, Store
from headwise.spectra import LogWeights, count
from recording import RECORDS, interleaved, markdown_table, provenance, write_record

EPSILON = 1e-8
LENGTHS = (100, 200)
GOAL = 10.0

#: Heads and batch items of the sample, and how often each contestant is timed.
HEADS, BATCH, REPEATS = 8, 32, 3

#: Columns of the weights in the sample of projections: the table projects many heads at once.
COLUMNS = 192

#: What is printed below the totals.
MEANING = """\
× counting: both sides begin with the same logits. × the table: the plain loop draws weights,
projects tokens, multiplies to logits and decomposes, by head dimension, estimated from the
sample; against it stands the measured time of the whole table, every matrix of it, as headwise
reproduce asks it. There head dimensions of one seed share queries and keys."""

#: Rows that must load and draw within this many seconds.
ROWS, SECONDS = 10_000, 2.0


def logits_of(tokens: torch.Tensor, head_dim: int, heads: int) -> Iterator[LogWeights]:
    """The logits of so many heads, from freshly drawn weights, a few at a time."""
    shape = StackShape(width=WIDTH, head_dim=head_dim, heads=heads)
    return InitialLayer(shape, 0, 1).logits(tokens)


def sampled(head_dim: int) -> dict[str, int]:
    """How many heads each contestant meets."""
    counted, there = min(HEADS, WIDTH // head_dim), WIDTH // head_dim
    projected = min(there, max(counted, COLUMNS // head_dim))
    return {"headwise": counted, "matrix_rank": counted, "logits": projected}


def contestants(n: int, head_dim: int) -> dict[str, Callable[[], list]]:
    """Two ways from logits to counts, and the way to the logits."""
    # Table 1 draws its inputs once for all heads, so that is no part of a head's time.
    tokens = random_tokens("normal(0,1)", (BATCH, n, WIDTH), stream(0, "inputs"))
    heads = sampled(head_dim)
    parts = list(logits_of(tokens, head_dim, heads["headwise"]))

    def plain() -> list[torch.Tensor]:
        return [
            torch.linalg.matrix_rank(torch.softmax(part.values, -1), atol=EPSILON) for part in parts
        ]

    return {
        "headwise": lambda: [count(part, EPSILON) for part in parts],
        "matrix_rank": plain,
        # Each is dropped when the next is made, as in the table.
        "logits": lambda: list(deque(logits_of(tokens, head_dim, heads["logits"]), maxlen=1)),
    }


def refuse_differing(n: int, head_dim: int, rivals: dict[str, Callable[[], list]]) -> None:
    """A decomposition must lie in every certified interval."""
    for ours, theirs in zip(rivals["headwise"](), rivals["matrix_rank"](), strict=True):
        if not bool(((ours.low <= theirs) & (theirs <= ours.high)).all()):
            raise SystemExit(f"counts differ for {n} tokens, d_h {head_dim}")


def measured(n: int, head_dim: int, repeats: int) -> dict[str, object]:
    """Compare counts, then times, at one length and head dimension."""
    rivals = contestants(n, head_dim)
    refuse_differing(n, head_dim, rivals)
    heads, seconds = sampled(head_dim), interleaved(rivals, repeats)
    each = {name: 1e6 * s / (heads[name] * BATCH) for name, s in seconds.items()}
    return {
        "n": n,
        "d_h": head_dim,
        "matrices in the table": matrices_in_table(n, head_dim),
        "headwise µs": each["headwise"],
        "matrix_rank µs": each["matrix_rank"],
        "×": each["matrix_rank"] / each["headwise"],
        "logits µs": each["logits"],
    }


def matrices_in_table(n: int, head_dim: int) -> int:
    """How many matrices Table 1 has of a length and head dimension."""
    return sum(
        (spec.heads or spec.width // spec.head_dim) * spec.batch
        for spec in TABLE_1.specs(Scale.PAPER)
        if isinstance(spec, MeasureRank) and (spec.tokens, spec.head_dim) == (n, head_dim)
    )


def total(n: int, rows: list[dict]) -> dict[str, object]:
    """The whole table at a length, from what one matrix of each head dimension takes."""
    own = [row for row in rows if row["n"] == n]
    ours, theirs, logits = (
        sum(row["matrices in the table"] * row[f"{name} µs"] for row in own) / 1e6
        for name in ("headwise", "matrix_rank", "logits")
    )
    whole = seconds_of_table(n)
    return {
        "n": n,
        "counting s": ours,
        "matrix_rank s": theirs,
        "× counting": theirs / ours,
        "logits s": logits,
        "the table s": whole,
        "× the table": (theirs + logits) / whole,
        "goal ×": GOAL,
    }


def seconds_of_table(n: int) -> float:
    """All of Table 1 at a length, as ``headwise reproduce`` asks it, from the seeds on."""
    asked = [s for s in TABLE_1.specs(Scale.PAPER) if isinstance(s, MeasureRank) and s.tokens == n]
    shared_beginning.cache_clear()
    start = time.perf_counter()
    for spec in asked:
        spec.ask()
    return time.perf_counter() - start


def many_specs() -> list[Spec]:
    """10,000 different questions of the kind that exhibits ask most."""
    axes = {"tokens": range(10, 110), "head_dim": HEAD_DIMS[:5], "seed": range(20)}
    return grid(MeasureRank, {}, **{name: list(values) for name, values in axes.items()})


def drawn(answers: Answers) -> Presentation:
    """Means over seeds for five of the lengths."""
    curves = tuple(
        rank_curve(f"{n} tokens", pooled_by(answers.rows(tokens=n), "head_dim"))
        for n in range(10, 110, 20)
    )
    return Presentation(panels=(Panel("Many rows", "head dimension", "rank / length", curves),))


MANY = Exhibit(
    "Rows made up.", {Scale.LAPTOP: many_specs}, drawn, name="bench/many", title="Many rows"
)


def fill(store: Store) -> None:
    """Store made-up answers to all of them."""
    made = Provenance("0", "0", "cpu", "float64", 0.0, "", 0)
    row = {"mean": 0.5, "std": 0.1, "count": 32, "stderr": 0.01, "undecided": 0, "layer": 1}
    for spec in many_specs():
        store.put(spec, Answer(spec.key, (row,), made))


def seconds_to_draw(rounds: int) -> dict[str, float]:
    """From a store of 10,000 rows to figures and a page: wall and processor time, medians."""
    wall, processor = [], []
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.db") as store:
        fill(store)
        for _ in range(rounds):
            start, busy = time.perf_counter(), time.process_time()
            write_exhibits([from_store(store, Wanted(MANY, Scale.LAPTOP))], Path(folder) / "out")
            wall.append(time.perf_counter() - start)
            processor.append(time.process_time() - busy)
    return {
        "seconds to load and draw": statistics.median(wall),
        "of processor": statistics.median(processor),
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=RECORDS)
    asked = parser.parse_args()
    rows = [measured(n, r, asked.repeats) for n in LENGTHS for r in HEAD_DIMS]
    totals = [total(n, rows) for n in LENGTHS]
    drawing = {"rows": ROWS, **seconds_to_draw(asked.repeats), "goal": SECONDS}
    tables = [markdown_table(rows), markdown_table(totals), MEANING, markdown_table([drawing])]
    tables.append(f"Load average at the end: {os.getloadavg()[0]:.1f}.")
    table = "\n\n".join(tables)
    print(table)
    record = {
        "provenance": provenance("cpu", "float64", 0),
        "rows": rows,
        "totals": totals,
        "drawing": drawing,
        "load average": os.getloadavg()[0],
    }
    print("written to", write_record(asked.out, "exhibits_cpu", record, table).name)


if __name__ == "__main__":
    main()
