"""Trace tokens early in training: how much of each output is the same for all?

    python benchmarks/trace_constant_part.py --width 256 [--rank 256] [--batch 64] [--steps 760]
        [--slope 4e-6] [--device cpu] [--plain]

trains the heads paper's encoder (two layers, 8 copies, 16 points, fresh data, a rate that rises by
the slope with each step) with torch's own AdamW; with ``--plain`` an encoder put together from
torch's own layers. The table at the end has the sum of the rates so far, the test loss, the cosine
of outputs to their targets, the length of the mean output direction (1: all outputs point one way),
the scale of the last norm, and, before the norms of both MLPs, the length of a token and of what
sets it apart from the mean token. On a CPU width 256 takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.data import FarthestNeighbour
from headwise.devices import refuse_absent
from headwise.models import NeighbourShape
from headwise.models.norms import UnitNorm
from headwise.report import Table
from scripts import run_script

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


class PlainBlock(nn.Module):
    """One layer of the paper's encoder from torch's own attention and linear layers."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.copies = nn.ModuleList(
            nn.MultiheadAttention(width, width // rank, batch_first=True) for _ in range(COPIES)
        )
        self.mlp = nn.Sequential(
            nn.Linear(width, MLP_WIDTH), nn.ReLU(), nn.Linear(MLP_WIDTH, width)
        )
        self.attention_norm, self.mlp_norm = UnitNorm(), UnitNorm()

    def forward(self, tokens: Tensor) -> Tensor:
        """Attention averaged over copies, then the MLP, each added and normed."""
        found = [copy(tokens, tokens, tokens, need_weights=False)[0] for copy in self.copies]
        tokens = self.attention_norm(tokens + torch.stack(found).mean(0))
        return self.mlp_norm(tokens + self.mlp(tokens))


def encoder(shape: NeighbourShape, seed: int, plain: bool) -> nn.Module:
    """headwise's encoder as the exhibits train it, or the plain one."""
    if plain:
        torch.manual_seed(seed)
        return nn.Sequential(*(PlainBlock(shape.width, shape.rank) for _ in range(shape.layers)))
    return shape.build(seed)


def mlp_norms(model: nn.Module) -> list[UnitNorm]:
    """The norm after each layer's MLP, in order."""
    ends = [module for name, module in model.named_modules() if name.endswith("mlp_norm")]
    return [norm for norm in ends if isinstance(norm, UnitNorm)]


def watch(norms: Sequence[nn.Module]) -> dict[int, Lengths]:
    """A dictionary that always holds the lengths before each norm at the last call."""
    seen: dict[int, Lengths] = {}

    def look(number: int, inputs: tuple[Tensor, ...]) -> None:
        seen[number] = Lengths.of(inputs[0].detach())

    for number, norm in enumerate(norms):
        norm.register_forward_pre_hook(lambda _, inputs, number=number: look(number, inputs))
    return seen


@torch.no_grad()
def tested(model: nn.Module, points: Tensor, wanted: Tensor) -> tuple[str, ...]:
    """Loss, cosine to the target, and how far all answers point one way."""
    answers = model(points)
    ways = nn.functional.normalize(answers, dim=-1)
    loss = (answers - wanted).square().sum(-1).mean()
    return (
        f"{loss:.4f}",
        f"{(ways * wanted).sum(-1).mean():.4f}",
        f"{ways.mean((0, 1)).norm():.3f}",
    )


def trace(asked: argparse.Namespace) -> Table:
    """Train, and look twenty times."""
    refuse_absent(asked.device)
    sizes = {"tokens": TOKENS, "layers": 2, "copies": COPIES, "mlp_width": MLP_WIDTH}
    shape = NeighbourShape(width=asked.width, rank=asked.rank or asked.width, **sizes)
    task = FarthestNeighbour(shape.width, TOKENS)
    model = encoder(shape, asked.seed, asked.plain).to(asked.device)
    norms = mlp_norms(model)
    generator, seen = torch.Generator(asked.device).manual_seed(asked.seed), watch(norms)
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    test, rates, lines = _drawn(task, 256, generator), 0.0, []
    for step in range(1, asked.steps + 1):
        optimiser.param_groups[0]["lr"] = asked.slope * step
        rates += asked.slope * step
        points, wanted = _drawn(task, asked.batch, generator)
        loss = (model(points) - wanted).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(1, asked.steps // 20) == 0:
            now = tested(model, *test)
            lengths = [f"{one.token:.2f} {one.apart:.2g}" for one in seen.values()]
            lines.append((step, f"{rates:.3f}", *now, f"{float(norms[-1].scale):.3f}", *lengths))
            print(f"step {step} of {asked.steps}", file=sys.stderr, flush=True)
    names = ("step", "rates", "loss", "target", "one way", "scale", "layer 1", "layer 2")
    return Table(names, tuple(lines))


def _drawn(task: FarthestNeighbour, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    (points,), (wanted,) = task.batch(task.noise(size, generator))
    return points, wanted


def main() -> None:
    """Read the sizes, trace, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rank", type=int, help="by default the width")
    parser.add_argument("--batch", type=int, default=64, help="sequences a step")
    parser.add_argument("--steps", type=int, default=760)
    parser.add_argument("--slope", type=float, default=4e-6, help="of the rate, a step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plain", action="store_true", help="torch's own layers")
    print(trace(parser.parse_args()).text())


if __name__ == "__main__":
    run_script(main)
