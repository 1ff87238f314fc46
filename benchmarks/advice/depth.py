"""How much of its rank each layer of a task uses, at the start and trained, and what a cut costs.

    python -m benchmarks.advice.depth --task in-context --heads 4 --rank 32 --out depth.jsonl

One geometry is trained as the sweeps do it. Rows of kind "layer" say for every layer

* the effective dimension of the tokens that enter its block ("stream") and, after the norm, its
  attention ("tokens"), by the measure that the adviser takes of the data;
* for the query-key form W_Qᵀ W_K and the value-output form W_O W_V of its heads, the participation
  ratio (Σσ²)² / Σσ⁴ of the singular values and how many hold 95 % of Σσ²: of the weights alone
  ("weights") and over the tokens ("data"), as means over heads.

Over the tokens, the query-key form's singular values are those of the logits between all queries
and all keys. The mean key of a sequence is left out: it moves all logits of a query alike, which
softmax does not see. The value-output form's are those of what each token would add to the output,
less its mean.

Rows of kind "cut" say what is left of the score when the form of every head of one layer, or of
all of them, is cut to a rank: the best one in the sense of those singular values. Nothing is
trained after a cut. Moments come from the 64 sequences that an adviser is shown, scores from test
data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from benchmarks.advice.sweep import settings_of
from benchmarks.advice.tasks import BENCHES, RANKS, Bench, Loaded
from benchmarks.recording import Row, provenance, told
from torch import Tensor, nn

from headwise.advice.tokens.statistics import effective_dimension
from headwise.attention import FullProjection, HeadGeometry
from headwise.data import Batch
from headwise.models.transformer import Block
from headwise.spectra.ranks import Spectrum, energy_rank
from headwise.training import Settings, train
from headwise.training.streams import examination

#: The share of Σσ² that counts as all of it.
SHARE = 0.95

#: Sequences in one forward pass.
PASS = 256

FormName = Literal["query-key", "value-output"]


@dataclass(frozen=True, eq=False)
class Form:
    """A bilinear form of each head by the second moments (h, r, r) of what its two sides give.

    With L the vectors of one side and R those of the other, in rows, its singular values are those
    of L Rᵀ, over the root of how many there are.
    """

    left: Tensor
    right: Tensor

    def spectrum(self) -> Spectrum:
        """Its singular values, for each head."""
        return Spectrum(torch.linalg.svdvals(_root(self.left) @ _root(self.right)))

    def cut(self, rank: int) -> Tensor:
        """The maps (h, r, r) of the left side that make of each form its best one of this rank."""
        root = _root(self.left)
        directions = torch.linalg.svd(root @ _root(self.right)).U[..., :rank]
        return root @ directions @ directions.mT @ torch.linalg.pinv(root, hermitian=True)


def _root(moments: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(moments)
    return vectors * values.clamp(min=0).sqrt().unsqueeze(-2) @ vectors.mT


def participation(spectrum: Spectrum) -> Tensor:
    """(Σσ²)² / Σσ⁴: k for k equal singular values."""
    squares = (spectrum.values / spectrum.largest.unsqueeze(-1)).square()
    return squares.sum(-1).square() / squares.square().sum(-1)


def _moments(rows: Tensor) -> Tensor:
    """Second moments (h, r, r) of (b, h, n, r), over sequences and tokens."""
    flat = rows.double().transpose(0, 1).flatten(1, 2)
    return flat.mT @ flat / flat.shape[1]


@dataclass(frozen=True, eq=False)
class Layer:
    """A block with the tokens (b, n, d) that enter it and, after the norm, its attention."""

    block: Block
    stream: Tensor
    tokens: Tensor

    @property
    def projection(self) -> FullProjection:
        """The maps of its heads."""
        found = self.block.attention.projection
        if not isinstance(found, FullProjection):
            raise TypeError(f"heads with their own queries, keys and values, got {found!r}")
        return found

    def over_weights(self) -> dict[FormName, Form]:
        """The forms of the weights alone."""
        maps, heads = self.projection, self.projection.geometry.heads
        query, key, value = (
            part.weight.detach().double().unflatten(0, (heads, -1))
            for part in (maps.query, maps.key, maps.value)
        )
        output = self._output()
        return {
            "query-key": Form(query @ query.mT, key @ key.mT),
            "value-output": Form(value @ value.mT, output.mT @ output),
        }

    @torch.no_grad()
    def over_tokens(self) -> dict[FormName, Form]:
        """The forms over the tokens, less what attention cannot use."""
        found, output = self.block.attention.heads(self.tokens), self._output()
        keys = found.keys - found.keys.mean(-2, keepdim=True)
        values = found.values - _mean(found.values)
        return {
            "query-key": Form(_moments(found.queries), _moments(keys)),
            "value-output": Form(_moments(values), output.mT @ output),
        }

    @torch.no_grad()
    def logit_spread(self) -> float:
        """Root mean square of the logits, less the mean key's, over all tokens and heads."""
        energy = self.over_tokens()["query-key"].spectrum().energy
        return float(energy.mean().sqrt()) / self.block.attention.temperature

    def _output(self) -> Tensor:
        maps = self.projection
        cut = maps.output.weight.detach().double().unflatten(1, (maps.geometry.heads, -1))
        return cut.transpose(0, 1)


def _mean(rows: Tensor) -> Tensor:
    return rows.mean((0, 2), keepdim=True)


@torch.no_grad()
def layers(model: nn.Module, *examples: Tensor) -> list[Layer]:
    """Every block with what enters it."""
    seen: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen[module] = given[0].detach()

    blocks = [module for module in model.modules() if isinstance(module, Block)]
    watched = [*blocks, *(block.attention for block in blocks)]
    hooks = [module.register_forward_pre_hook(keep) for module in watched]
    try:
        model(*examples)
    finally:
        for hook in hooks:
            hook.remove()
    return [Layer(block, seen[block], seen[block.attention]) for block in blocks]


@torch.no_grad()
def cut_layer(layer: Layer, form: FormName, rank: int) -> None:
    """Cut one form of every head to a rank, in place; the mean of the values stays."""
    maps = layer.projection
    kept = layer.over_tokens()[form].cut(rank)
    part = maps.query if form == "query-key" else maps.value
    weight, bias = (p.double().unflatten(0, kept.shape[:2]) for p in (part.weight, part.bias))
    changed = (kept @ bias.unsqueeze(-1)).squeeze(-1)
    if form == "value-output":
        mean = _mean(layer.block.attention.heads(layer.tokens).values.double())[0, :, 0]
        changed = changed + mean - (kept @ mean.unsqueeze(-1)).squeeze(-1)
    part.weight.copy_((kept @ weight).flatten(0, 1))
    part.bias.copy_(changed.flatten())


@torch.no_grad()
def score(model: nn.Module, loaded: Loaded, tested: Batch) -> float:
    """The score on test data, as the sweeps have it."""
    total, found = len(tested.targets[0]), 0.0
    for first in range(0, total, PASS):
        inputs, targets = (tuple(t[first : first + PASS] for t in ts) for ts in tested)
        share = len(targets[0]) / total
        found += share * float(loaded.task.score(model(*inputs), *targets))
    return found


def layer_rows(model: nn.Module, loaded: Loaded) -> Iterator[Row]:
    """What every layer has and uses."""
    for number, layer in enumerate(layers(model, *loaded.examples)):
        row: Row = {
            "kind": "layer",
            "layer": number + 1,
            "stream_dimension": effective_dimension(layer.stream.double().flatten(0, 1)),
            "token_dimension": effective_dimension(layer.tokens.double().flatten(0, 1)),
            "logit_spread": layer.logit_spread(),
        }
        for source, forms in (("weights", layer.over_weights()), ("data", layer.over_tokens())):
            for name, form in forms.items():
                found = form.spectrum()
                row[f"{name} {source} participation"] = float(participation(found).mean())
                row[f"{name} {source} held"] = float(energy_rank(found, SHARE).double().mean())
        yield row


def cut_rows(
    model: nn.Module, loaded: Loaded, tested: Batch, ranks: Sequence[int]
) -> Iterator[Row]:
    """The score with one form of one layer, or of all (layer 0), cut to a rank."""
    seen = layers(model, *loaded.examples)
    whole, depth, geometry = score(model, loaded, tested), len(seen), seen[0].projection.geometry
    forms: dict[FormName, int] = {"query-key": geometry.qk_rank, "value-output": geometry.v_rank}
    for form, full in forms.items():
        for rank in (rank for rank in ranks if rank < full):
            for layer in range(depth + 1):
                changed = deepcopy(model)
                chosen = layers(changed, *loaded.examples)
                for one in chosen if layer == 0 else chosen[layer - 1 : layer]:
                    cut_layer(one, form, rank)
                left = score(changed, loaded, tested)
                found = {"form": form, "layer": layer, "rank": rank, "score": left}
                yield {"kind": "cut", **found, "whole_score": whole}


def depth_rows(
    bench: Bench, loaded: Loaded, geometry: HeadGeometry, settings: Settings, ranks: Sequence[int]
) -> Iterator[Row]:
    """All rows of one geometry: every seed at its start and trained."""
    start = time.monotonic()
    builder = partial(bench.build, geometry)
    done = train({"": builder}, loaded.task, settings)
    seconds = round(time.monotonic() - start, 1)
    tested = examination(loaded.task, done.members, settings)
    for number, member in enumerate(done.members):
        own = Batch(*(tuple(t[number].cpu() for t in ts) for ts in tested))
        about = _about(bench, geometry, settings, member.seed, seconds)
        at_start, trained = done.variants[member.variant](member.seed), done.model(number)
        for moment, model in (("start", at_start), ("trained", trained)):
            about = {**about, "moment": moment, "model_score": score(model, loaded, own)}
            yield from ({**row, **about} for row in layer_rows(model, loaded))
        yield from ({**row, **about} for row in cut_rows(trained, loaded, own, ranks))


def _about(
    bench: Bench, geometry: HeadGeometry, settings: Settings, seed: int, seconds: float
) -> Row:
    return {
        "task": bench.name,
        "measure": bench.measure,
        "width": geometry.width,
        "depth": bench.shape.depth,
        "heads": geometry.heads,
        "qk_rank": geometry.qk_rank,
        "v_rank": geometry.v_rank,
        "steps": settings.steps,
        "batch": settings.batch,
        "rate": bench.training.rate,
        "evaluation": settings.evaluation,
        "seconds": seconds,
        **provenance(settings.device.split(":")[0], settings.precision, seed),
        "command": " ".join(["python -m benchmarks.advice.depth", *map(told, sys.argv[1:])]),
    }


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", choices=BENCHES, required=True)
    parser.add_argument("--heads", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True, help="of queries and keys")
    parser.add_argument("--v-rank", type=int, help="of values, if it is another")
    parser.add_argument("--seeds", type=_numbers, default=(0,), help="by commas")
    parser.add_argument("--steps", type=int, help="fewer than the task's own")
    parser.add_argument("--batch", type=int, help="another than the task's own")
    parser.add_argument("--evaluation", type=int, help="test sequences, fewer than the task's own")
    parser.add_argument("--cuts", type=_numbers, default=RANKS, help="ranks to cut to, by commas")
    parser.add_argument("--device", default="cpu", help="cpu or cuda, for the training")
    parser.add_argument("--data", type=Path, default=Path("local/advice-data"))
    parser.add_argument("--out", type=Path, required=True, help="rows are appended here")
    return parser.parse_args(words)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


def main(given: argparse.Namespace) -> None:
    """Train, measure, append."""
    bench = BENCHES[given.task]
    names = ("steps", "batch", "evaluation")
    asked = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    bench = replace(bench, training=replace(bench.training, **asked))
    values = given.rank if given.v_rank is None else given.v_rank
    geometry = HeadGeometry(bench.shape.width, given.heads, given.heads, given.rank, values)
    given.execution = given.precision = None
    settings = replace(settings_of(bench, given), rows_per_decade=1)
    loaded = bench.load(given.data, given.device)
    rows = list(depth_rows(bench, loaded, geometry, settings, given.cuts))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    last = [row for row in rows if row["moment"] == "trained" and row.get("layer") == 1]
    scores = sorted({(row["seed"], row["model_score"]) for row in last})
    print(f"{given.task} {given.heads} × {given.rank}: {scores}, {len(rows)} rows", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(arguments(sys.argv[1:]))
