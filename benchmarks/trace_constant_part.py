"""What becomes of the tokens early in training: how much of each output is the same for all?

    python benchmarks/trace_constant_part.py --width 256 [--batch 64] [--steps 760] [--slope 4e-6]

trains the heads paper's encoder (two layers of full rank, 8 copies, 16 points, fresh data, a rate
that rises by the slope with each step) with torch's own AdamW and prints, as it goes: the sum of
the rates so far, the test loss, the cosine of outputs to their targets, the length of the mean
output direction (1: all outputs point one way), the scale of the last norm, and, before the norms
of both MLPs, the length of a token and of what sets it apart from the mean token. On a CPU width
256 takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.data import Batch, FarthestNeighbour
from headwise.models import NeighbourShape
from headwise.report import Table

#: The paper has 16 points and 8 copies; its MLP is this wide at every width.
TOKENS, COPIES, MLP_WIDTH = 16, 8, 2048


@dataclass(frozen=True)
class Lengths:
    """How long tokens are before a norm, and the part of them that differs from token to token."""

    token: float
    apart: float

    @classmethod
    def of(cls, tokens: Tensor) -> Lengths:
        """Means over all tokens of all sequences."""
        apart = tokens - tokens.mean((0, 1))
        return cls(*(float(part.norm(dim=-1).mean()) for part in (tokens, apart)))


def watch(model: nn.Module) -> dict[str, Lengths]:
    """A dictionary that always holds the lengths before each norm at the last call."""
    seen: dict[str, Lengths] = {}

    def keep(name: str) -> None:
        def look(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
            seen[name] = Lengths.of(inputs[0].detach())

        model.get_submodule(name).register_forward_hook(look)

    for layer in range(2):
        keep(f"stack.blocks.{layer}.mlp_norm")
    return seen


@torch.no_grad()
def line(
    model: nn.Module, test: Batch, seen: Mapping[str, Lengths], step: int, rates: float
) -> tuple[str, ...]:
    """One line of the table."""
    (points,), (wanted,) = test
    answers = model(points)
    ways = nn.functional.normalize(answers, dim=-1)
    loss = (answers - wanted).square().sum(-1).mean()
    scale = model.get_parameter("stack.blocks.1.mlp_norm.scale")
    return (
        f"{step}",
        f"{rates:.3f}",
        f"{loss:.4f}",
        f"{(ways * wanted).sum(-1).mean():.4f}",
        f"{ways.mean((0, 1)).norm():.3f}",
        f"{float(scale):.3f}",
        *(f"{one.token:.2f} {one.apart:.2g}" for one in seen.values()),
    )


def trace(width: int, batch: int, steps: int, slope: float, seed: int) -> Table:
    """Train, and look twenty times."""
    shape = NeighbourShape(
        width=width, tokens=TOKENS, layers=2, rank=width, copies=COPIES, mlp_width=MLP_WIDTH
    )
    model, task = shape.build(seed), FarthestNeighbour(width, TOKENS)
    generator, seen = torch.Generator().manual_seed(seed), watch(model)
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    test, rates, lines = task.batch(task.noise(256, generator)), 0.0, []
    for step in range(1, steps + 1):
        optimiser.param_groups[0]["lr"] = slope * step
        rates += slope * step
        (points,), (wanted,) = task.batch(task.noise(batch, generator))
        loss = (model(points) - wanted).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(1, steps // 20) == 0:
            lines.append(line(model, test, seen, step, rates))
            print(f"step {step} of {steps}", file=sys.stderr, flush=True)
    names = ("step", "rates", "loss", "target", "one vector", "scale", "layer 1", "layer 2")
    return Table(names, tuple(lines))


def main() -> None:
    """Read the sizes, trace, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=760)
    parser.add_argument("--slope", type=float, default=4e-6, help="of the rate, a step")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(trace(asked.width, asked.batch, asked.steps, asked.slope, asked.seed).text())


if __name__ == "__main__":
    main()
