"""One training step of our layer beside the stock layer: same weights, same process, interleaved.

Results and gradients are compared before anything is timed. A ratio is the median over rounds
of stock time / our time within one round, so what else the machine does hits both; times are
the best of all rounds, which other work disturbs least, and the floor is taken likewise.

    python benchmarks/bench_layer.py [--device cuda] [--rounds 7] [--hardware NAME]

writes benchmarks/records/layer_<hardware>_<yyyymm>.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from headwise.attention import HeadGeometry, HeadMean, mha
from recording import RECORDS, provenance

SEED = 0


@dataclass
class Row:
    """One line of the table: what was timed, both times and their ratio."""

    work: str
    baseline: str
    baseline_seconds: float
    seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    goal: float | None
    floor_seconds: float | None


def seconds(work, device):
    """How long one run of ``work`` takes, the device's queue included."""
    synchronise(device)
    start = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - start


def synchronise(device):
    """Wait until a GPU has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()


def interleaved(baseline, ours, rounds, device):
    """Times of both in turn, each warmed up once."""
    seconds(baseline, device), seconds(ours, device)
    return [(seconds(baseline, device), seconds(ours, device)) for _ in range(rounds)]


def row(work, baseline, pairs, goal=None, floor=None):
    """Medians and the range of ratios of interleaved times."""
    ratios = sorted(a / b for a, b in pairs)
    return Row(
        work,
        baseline,
        min(a for a, _ in pairs),
        min(b for _, b in pairs),
        statistics.median(ratios),
        ratios[0],
        ratios[-1],
        goal,
        floor,
    )


def copy_weights(layer, copies):
    """The weights of averaged stock layers as one layer of ours."""
    p = layer.projection
    with torch.no_grad():
        for index, linear in enumerate((p.query, p.key, p.value)):
            linear.weight.copy_(torch.cat([c.in_proj_weight.chunk(3)[index] for c in copies]))
            linear.bias.copy_(torch.cat([c.in_proj_bias.chunk(3)[index] for c in copies]))
        p.output.weight.copy_(torch.cat([c.out_proj.weight for c in copies], dim=1))
        p.output.bias.copy_(torch.stack([c.out_proj.bias for c in copies]).mean(0))


def averaged(copies, x):
    """The heads paper's widening: stock layers called in a loop and averaged."""
    return sum(c(x, x, x, need_weights=False)[0] for c in copies) / len(copies)


def step(forward, parameters, x, direction):
    """Forward and backward, gradients of all weights."""

    def run():
        for parameter in parameters:
            parameter.grad = None
        forward(x).backward(direction)

    return run


def refuse_difference(ours, copies, x, direction):
    """Stop unless outputs and gradients agree to float32."""
    a, b = ours(x), averaged(copies, x)
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    a.backward(direction)
    b.backward(direction)
    stacked = torch.cat([c.in_proj_weight.grad.chunk(3)[1] for c in copies])
    scale = float(stacked.abs().max())
    found = ours.projection.key.weight.grad
    torch.testing.assert_close(found, stacked, rtol=1e-2, atol=1e-4 * scale)


def widened(rank, device, *, width=64, tokens=16, batch=256, number=64):
    """Our layer with ``number`` copies' worth of heads, the copies, and an input."""
    generator = torch.Generator().manual_seed(SEED)
    copies = nn.ModuleList(
        nn.MultiheadAttention(width, width // rank, batch_first=True) for _ in range(number)
    ).to(device)
    geometry = HeadGeometry.free(width, number * width // rank, rank)
    ours = mha(geometry, "all", combination=HeadMean(number)).to(device)
    copy_weights(ours, copies)
    x = torch.randn(batch, tokens, width, generator=generator).to(device)
    direction = torch.randn(batch, tokens, width, generator=generator).to(device)
    return ours, copies, x, direction


def one_sdpa_call(layer):
    """The obvious way: the same layer with one scaled_dot_product_attention call."""

    def forward(x):
        q, k, v = layer.projection(x, x)
        mixed = scaled_dot_product_attention(q, k, v, scale=1 / layer.temperature)
        return layer.projection.combine(mixed, layer.factor)

    return forward


def floor(layer, x, device):
    """What no kernel goes below here: the projections alone, and the exponentials.

    The projections run forward and backward with nothing between them. Exponentials are taken
    twice for every logit (forward, and recomputed backward rather than stored: 1 GB in
    float32), at the rate of a block that stays in the cache.
    """
    p, g = layer.projection, layer.geometry

    def projections():
        q, k, v = p(x, x)
        p.combine(q + k + v).sum().backward()

    linear = min(seconds(projections, device) for _ in range(5))
    logits = x.shape[0] * g.heads * x.shape[1] ** 2
    block = torch.rand(2**18 if device == "cpu" else 2**26, device=device)
    out, repeats = torch.empty_like(block), 100 if device == "cpu" else 5

    def exponentials():
        for _ in range(repeats):
            torch.exp(block, out=out)

    rate = repeats * block.numel() / min(seconds(exponentials, device) for _ in range(5))
    return linear + 2 * logits / rate


def rank_rows(device, rounds):
    """64 averaged copies of the stock layer against one layer with as many heads."""
    for rank in (1, 4, 16):
        ours, copies, x, direction = widened(rank, device)
        refuse_difference(ours, copies, x, direction)
        heads = ours.geometry.heads
        baseline = step(partial(averaged, copies), list(copies.parameters()), x, direction)
        mine = step(ours, list(ours.parameters()), x, direction)
        work = f"d=64, N=16, batch 256, r={rank}, H={heads}"
        goal, least = (2.0, floor(ours, x, device)) if rank == 1 else (None, None)
        pairs = interleaved(baseline, mine, rounds, device)
        yield row(work, "64 averaged nn.MultiheadAttention", pairs, goal, least)
        if rank == 1:
            obvious = step(one_sdpa_call(ours), list(ours.parameters()), x, direction)
            yield from sdpa_row(work, obvious, mine, device)


def sdpa_row(work, obvious, mine, device):
    """The same layer by one general kernel call, where that runs at all."""
    try:
        pairs = interleaved(obvious, mine, 2, device)
    except RuntimeError as error:  # a million heads exceed the launch limits of some kernels
        print(f"one SDPA call: {str(error).splitlines()[0]}")
        return
    yield row(work, "one SDPA call", pairs)


def standard_row(device, rounds, *, width=512, heads=8, tokens=512, batch=4):
    """The usual geometry against the stock layer itself."""
    stock = nn.MultiheadAttention(width, heads, batch_first=True).to(device)
    ours = mha(HeadGeometry.standard(width, heads), "all").to(device)
    copy_weights(ours, [stock])
    x = torch.randn(batch, tokens, width, generator=torch.Generator().manual_seed(SEED)).to(device)
    direction = torch.ones_like(x)
    refuse_difference(ours, [stock], x, direction)
    baseline = step(partial(averaged, [stock]), list(stock.parameters()), x, direction)
    pairs = interleaved(
        baseline, step(ours, list(ours.parameters()), x, direction), 5 * rounds, device
    )
    work = f"d={width}, n={tokens}, batch {batch}, r=d/H, H={heads}"
    return row(work, "nn.MultiheadAttention", pairs, goal=1.0)


def table(rows):
    """The rows as Markdown."""
    lines = [
        "| work (forward + backward, float32) | against | theirs, best s | ours, best s "
        "| ratio, median (range) | goal | floor, best s |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        goal = "" if r.goal is None else f"≥ {r.goal:g}×"
        least = "" if r.floor_seconds is None else f"{r.floor_seconds:.3g}"
        lines.append(
            f"| {r.work} | {r.baseline} | {r.baseline_seconds:.4g} | {r.seconds:.4g} | "
            f"{r.ratio:.2f}× ({r.ratio_low:.2f}–{r.ratio_high:.2f}) | {goal} | {least} |"
        )
    return "\n".join(lines)


def machine(device):
    """What the times were taken on."""
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor()
    return {
        "device": name or platform.machine(),
        "threads": torch.get_num_threads(),
        "load average at the end": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def main():
    """Compare, time, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--hardware", help="name for the record file; default: the device")
    given = parser.parse_args()
    torch.manual_seed(SEED)
    rows = [*rank_rows(given.device, given.rounds), standard_row(given.device, given.rounds)]
    print(table(rows))
    write(given, rows)


def write(given, rows):
    """Put the record beside the others."""
    RECORDS.mkdir(exist_ok=True)
    month = datetime.now(UTC).strftime("%Y%m")
    path = RECORDS / f"layer_{given.hardware or given.device}_{month}"
    about = machine(given.device)
    made_by = provenance(given.device, "float32", SEED)
    record = {
        "provenance": made_by,
        "machine": about,
        "rounds": given.rounds,
        "rows": [asdict(r) for r in rows],
    }
    path.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")
    facts = ", ".join(f"{key} {value}" for key, value in about.items())
    text = f"# Attention layers, one training step\n\n{facts}\n\n{table(rows)}\n"
    path.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
