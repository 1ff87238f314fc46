"""Training many small models at once, beside a plain loop; and what the paper's grids would cost.

    python benchmarks/bench_training.py [--device cuda] [--hardware NAME] [--parts LIST] [--grid]

The parts: ``ensemble`` (five seeds as one run against five runs of a plain loop with
nn.TransformerEncoder), ``thousands`` (one step of 4,096 heads of rank one), ``laptop`` (the
small one-layer grid, one step), ``grid`` (one step of every cell of the heads paper's tables
and the seconds a run would take; ``--grid`` does this alone, ``--steps`` and ``--seeds`` set the
run). Writes benchmarks/records/training_<hardware>_<yyyymm>.json and .md.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time

import torch
from torch import nn

from headwise.attention import HeadGeometry, LearnedAdditive
from headwise.data import FarthestNeighbour, InContext
from headwise.models import EncoderStack, InContextRegressor, NeighbourShape, UnitNorm
from headwise.training import Ensemble, Settings
from headwise.training.replay import replayed
from recording import RECORDS, markdown_table, provenance, write_record

#: What five seeds as one run must gain on five plain runs, and the time of a step of r = 1.
GOAL_RATIO, GOAL_SECONDS = 4.0, 0.003
RANKS = (1, 2, 4, 8, 16, 32, 64)
ROUNDS = 3


def wait(device):
    """Until a GPU has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_per_step(advance, device, budget):
    """The median over rounds of steps that fill the budget of seconds."""
    return in_turns([advance], device, budget)[0]


def in_turns(advances, device, budget):
    """The median seconds of a step of each, in rounds that take turns."""
    counts = [steps_within(advance, device, budget / ROUNDS) for advance in advances]
    times = [[] for _ in advances]
    for _ in range(ROUNDS):
        for advance, count, found in zip(advances, counts, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                advance()
            wait(device)
            found.append((time.perf_counter() - start) / count)
    return [statistics.median(found) for found in times]


def steps_within(advance, device, seconds):
    """How many steps take about so long, one at least; after two to warm up."""
    for _ in range(2):
        advance()
    wait(device)
    start = time.perf_counter()
    advance()
    wait(device)
    once = max(time.perf_counter() - start, 1e-5)
    return max(1, min(300, int(seconds / once)))


def recorded(ensemble):
    """The step as it runs: a replayed graph on a GPU, plain calls on a CPU."""
    if not ensemble.settings.replayed:
        return ensemble.advance
    return replayed(ensemble.advance, ensemble.state, ensemble.noise.generators)


def farthest(shape, given, **more):
    """The step of an ensemble of one shape on its task."""
    settings = Settings(steps=100_000, evaluation=16, **({"device": given.device} | more))
    task = FarthestNeighbour(shape.width, shape.tokens)
    return recorded(Ensemble({"": shape.build}, task, settings))


def plain_step(device, heads=1, width=64, tokens=16, batch=256, mlp=2048):
    """One step of the loop anyone would write: nn.TransformerEncoder and torch's AdamW."""
    layer = nn.TransformerEncoderLayer(width, heads, mlp, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    # The paper's norm, so that both do the same work.
    model.layers[0].norm1, model.layers[0].norm2 = UnitNorm(), UnitNorm()
    model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), 0.01, (0.9, 0.95), weight_decay=0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)

    def step():
        points = nn.functional.normalize(torch.randn(batch, tokens, width, device=device), dim=-1)
        chosen = (points @ points.mT).argmin(-1, keepdim=True).expand_as(points)
        loss = (model(points) - points.gather(1, chosen)).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        scheduler.step()

    return step


def ensemble_rows(given):
    """Five seeds of the full-rank layer as one run against five plain runs."""
    ours = (
        farthest(NeighbourShape(rank=64), given, seeds=seeds) for seeds in (tuple(range(5)), (0,))
    )
    together, alone, plain = in_turns([*ours, plain_step(given.device)], given.device, given.budget)
    ratio = 5 * plain / together
    goal = f"≥ {GOAL_RATIO:g}×: {'met' if ratio >= GOAL_RATIO else 'missed'}"
    yield {
        "work": "d=64, N=16, r=64, H=1, L=1, batch 256, five seeds",
        "ms": 1e3 * together,
        "against": "five runs of nn.TransformerEncoder, one after another",
        "their ms": 5e3 * plain,
        "ratio": ratio,
        "goal": goal if given.device == "cuda" else "",
    }
    yield {
        "work": "the same, one seed",
        "ms": 1e3 * alone,
        "against": "one run of nn.TransformerEncoder",
        "their ms": 1e3 * plain,
        "ratio": plain / alone,
        "goal": "",
    }


def thousands_rows(given):
    """One step of 4,096 heads of rank one, and of the widths between."""
    for rank in (1, 4, 16):
        shape = NeighbourShape(rank=rank, copies=64)
        took = seconds_per_step(farthest(shape, given), given.device, given.budget)
        goal = f"≤ {1e3 * GOAL_SECONDS:g} ms: {'met' if took <= GOAL_SECONDS else 'missed'}"
        yield {
            "work": f"d=64, N=16, r={rank}, H={shape.heads}, L=1, batch 256, one seed",
            "ms": 1e3 * took,
            "against": "",
            "their ms": "",
            "ratio": "",
            "goal": goal if rank == 1 and given.device == "cuda" else "",
        }


def laptop_rows(given):
    """One step of each exponent of the small grid, all ranks and two seeds at once."""
    ranks = (1, 2, 4, 8, 16)
    sizes = {"width": 16, "tokens": 8}
    for copies in (1, 4, 16):
        shapes = [NeighbourShape(rank=r, copies=copies, mlp_width=128, **sizes) for r in ranks]
        settings = Settings(steps=3000, batch=64, seeds=(0, 1), evaluation=16, device=given.device)
        variants = {f"r={shape.rank}": shape.build for shape in shapes}
        ensemble = recorded(Ensemble(variants, FarthestNeighbour(16, 8), settings))
        # More copies than one have no plain counterpart.
        plain = [
            plain_step(given.device, 16 // r, batch=64, mlp=128, **sizes)
            for r in ranks
            if copies == 1
        ]
        took, *theirs = in_turns([ensemble, *plain], given.device, given.budget)
        separate = 2 * sum(theirs)
        yield {
            "work": f"d=16, N=8, r=1…16, {copies} copies, L=1, batch 64, two seeds: ten models",
            "ms": 1e3 * took,
            "against": "ten runs of nn.TransformerEncoder, one after another" if plain else "",
            "their ms": 1e3 * separate if plain else "",
            "ratio": separate / took if plain else "",
            "goal": f"3,000 steps with both protocols: {2 * 3000 * took:.0f} s",
        }


def cells():
    """Every cell of the heads paper's tables: exhibit, shape, published steps, micro-batches."""
    for layers in (1, 3, 5):
        for copies in (1, 8, 64):
            for rank in RANKS:
                shape = NeighbourShape(rank=rank, layers=layers, copies=copies)
                yield "rank, parameters, depth", shape, 100_000
    for positions in ("additive", "concatenated"):
        for layers in (1, 3):
            for rank in RANKS:
                shape = NeighbourShape(rank=rank, layers=layers, copies=8, positions=positions)
                yield "positions", shape, 200_000
    for tokens in (4, 16, 64, 256):
        for rank in (1, 8, 16, 32, 64):
            yield "role of N", NeighbourShape(64, tokens, 2, rank, 64), 200_000
    for width in (16, 64, 128, 256):
        for part in (1, 2, 4, 8, 16):
            yield "role of d", NeighbourShape(width, 16, 2, width // part, 8), 200_000


def regressor(heads):
    """The in-context model of the heads paper."""

    def build(seed):
        position = LearnedAdditive(82, 48, seed)
        geometry = HeadGeometry.standard(48, heads)
        return InContextRegressor(EncoderStack(geometry, position, depth=12, mlp_width=192), 20)

    return build


def grid_rows(given):
    """One step of every cell and what a run costs, in seconds, for the steps asked or published."""
    seeds = tuple(range(given.seeds))
    for exhibit, shape, printed in cells():
        micro = 8 if shape.tokens == 256 else 1
        yield timed_cell(
            given,
            exhibit,
            f"d={shape.width} N={shape.tokens} L={shape.layers} r={shape.rank} H={shape.heads} "
            f"{shape.positions}",
            printed,
            lambda shape=shape, micro=micro: farthest(
                shape, given, seeds=seeds, micro_batches=micro
            ),
        )
    for heads in (1, 2, 4, 8, 16):
        settings = Settings(
            steps=100_000, batch=64, seeds=seeds, evaluation=16, device=given.device
        )
        yield timed_cell(
            given,
            "in context",
            f"12 layers, width 48, {heads} heads",
            500_000,
            lambda heads=heads, settings=settings: recorded(
                Ensemble({"": regressor(heads)}, InContext(), settings)
            ),
        )


def timed_cell(given, exhibit, cell, printed, build):
    """The row of one cell; one that does not fit in memory says so."""
    steps = given.steps or printed
    row = {"exhibit": exhibit, "cell": cell, "seeds": given.seeds}
    try:
        took = seconds_per_step(build(), given.device, given.cell_budget)
        row |= {"ms per step": 1e3 * took, "steps": steps, "seconds": took * steps, "GiB": memory()}
    except torch.OutOfMemoryError:
        row |= {"ms per step": "out of memory", "steps": steps, "seconds": "", "GiB": ""}
    gc.collect()
    if given.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    print(row, flush=True)
    return row


def memory():
    """The most memory a GPU held, in GiB; nothing on a CPU."""
    return torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else ""


def totals(rows):
    """The seconds of each exhibit."""
    found: dict[str, float] = {}
    for row in rows:
        if isinstance(row["seconds"], float):
            found[row["exhibit"]] = found.get(row["exhibit"], 0.0) + row["seconds"]
    return [
        {"exhibit": name, "hours": value / 3600, "minutes": value / 60}
        for name, value in found.items()
    ]


PARTS = {"ensemble": ensemble_rows, "thousands": thousands_rows, "laptop": laptop_rows}


def main():
    """Time, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--hardware", help="name for the record file; default: the device")
    parser.add_argument("--parts", default="ensemble,thousands,laptop")
    parser.add_argument("--grid", action="store_true", help="the cost table as well")
    parser.add_argument("--steps", type=int, help="steps of a run; default: as published")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each measurement")
    parser.add_argument("--cell-budget", type=float, default=0.1, help="seconds for each cell")
    given = parser.parse_args()
    rows = []
    for name in filter(None, given.parts.split(",")):
        for row in PARTS[name](given):
            print(row, flush=True)
            rows.append(row)
    costs = list(grid_rows(given)) if given.grid else []
    report(given, rows, costs)


def report(given, rows, costs):
    """Tables for people, a record for later."""
    tables = [
        markdown_table(part) for part in (rows, totals(costs) if costs else [], costs) if part
    ]
    text = "\n\n".join(tables)
    print(text)
    record = {
        "provenance": provenance(given.device, "float32", 0),
        "rows": rows,
        "costs": costs,
    }
    write_record(RECORDS, f"training_{given.hardware or given.device}", record, text)


if __name__ == "__main__":
    main()
