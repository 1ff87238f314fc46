"""Latent attention against its twin: the rank of trained heads, and the loss, by latent size.

Causal language models on bytes of text. One has full keys and values (MHA); the others make them
from one latent vector per token and share a rotary key between heads, as DeepSeek does (MLA). Half
of each head's query-key dimensions are rotary in all of them. Every model has the same number of
parameters: what the latent saves goes into the MLP. All see the same batches and take the same
number of steps. The loss is on text that none has seen. Heads are measured on the CPU meanwhile.

    python -m benchmarks.latent_twins --device cuda --seconds 290 --text FILE --out FILE.json
    python -m benchmarks.latent_twins --device cpu --small --out FILE.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import provenance
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headwise.attention import Attention, HeadGeometry, LatentGeometry, Rotary, mha, mla
from headwise.probing import scan


@dataclass(frozen=True)
class Setting:
    """The sizes that all models share."""

    width: int = 256
    heads: int = 8
    layers: int = 4
    tokens: int = 256
    batch: int = 64
    steps: int = 1000
    rate: float = 2e-3
    latents: tuple[int, ...] = (4, 8, 16, 32, 128)
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def head_dim(self) -> int:
        """The query-key and value dimension of a head."""
        return self.width // self.heads


SMALL = Setting(32, 4, 2, 32, 4, 6, 1e-3, (8, 16), (0, 1))

#: Measured in every head; "query_key_rank" is that of the logits, to 1 % of their energy.
MEASURES = ("coarse_rank", "rank", "effective_rank", "hardmax_rank", "query_key_rank")
MEASURES += ("output_rank", "logit_scale")


class Block(nn.Module):
    """Attention and MLP, each behind a norm and added to its input."""

    def __init__(self, attention: nn.Module, width: int, hidden: int) -> None:
        super().__init__()
        self.attention = attention
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the tokens after both parts."""
        tokens = tokens + self.attention(self.first(tokens), mask="causal")
        return tokens + self.mlp(self.second(tokens))


class Model(nn.Module):
    """Bytes in, logits of the next byte out."""

    def __init__(self, setting: Setting, latent: int | None) -> None:
        super().__init__()
        width = setting.width
        layers = [_attention(setting, latent) for _ in range(setting.layers)]
        budget = _parameters(_attention(setting, None)) + 2 * width * 4 * width
        hidden = (budget - _parameters(layers[0])) // (2 * width)
        self.bytes = nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(layer, width, hidden) for layer in layers)
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the next byte at each place."""
        tokens = self.bytes(ids)
        for block in self.blocks:
            tokens = block(tokens)
        return self.out(self.norm(tokens))


def _attention(setting: Setting, latent: int | None) -> Attention:
    dim, rotary = setting.head_dim, setting.head_dim // 2
    if latent is None:
        geometry = HeadGeometry.standard(setting.width, heads=setting.heads)
        return mha(geometry, position=Rotary(rotary, pairs="adjacent"))
    heads = setting.heads
    return mla(LatentGeometry(setting.width, heads, heads, dim, dim, latent, None, rotary))


def _parameters(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


class Text:
    """Bytes on a device: nine tenths to train on, the rest to judge."""

    def __init__(self, path: Path | None, setting: Setting, device: str) -> None:
        raw = path.read_bytes() if path else _library_prose()
        data = torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(device)
        cut = len(data) * 9 // 10
        self.training, self.held_out, self.setting = data[:cut], data[cut:], setting
        self.offsets = torch.arange(setting.tokens + 1, device=device)

    def starts(self, steps: int, seed: int) -> Tensor:
        """Where the sequences of every step begin, the same for every model of this seed."""
        last = len(self.training) - self.setting.tokens - 1
        generator = torch.Generator().manual_seed(1000 + seed)
        drawn = torch.randint(last, (steps, self.setting.batch), generator=generator)
        return drawn.to(self.offsets.device)

    def batch(self, starts: Tensor) -> Tensor:
        """Training sequences of one byte more than the model sees."""
        return self.training[starts[:, None] + self.offsets].long()

    def judged(self, sequences: int, seed: int) -> Tensor:
        """Held-out sequences."""
        last = len(self.held_out) - self.setting.tokens - 1
        generator = torch.Generator().manual_seed(seed)
        starts = torch.randint(last, (sequences,), generator=generator).to(self.offsets.device)
        return self.held_out[starts[:, None] + self.offsets].long()


def _library_prose() -> bytes:
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics)).encode("utf-8", "ignore")


class Step:
    """One optimiser step on tensors that stay in place, replayed as a CUDA graph on a GPU."""

    def __init__(self, model: nn.Module, setting: Setting, device: str) -> None:
        self.model, self.device, gpu = model, device, device == "cuda"
        self.ids = torch.zeros(setting.batch, setting.tokens + 1, dtype=torch.long, device=device)
        self.rate = torch.zeros((), device=device)
        self.optimiser = torch.optim.AdamW(
            model.parameters(), self.rate, betas=(0.9, 0.95), fused=gpu, capturable=gpu
        )
        self.advance: Callable[[], None] = self._plain
        if gpu:
            try:
                self._capture()
            except RuntimeError as error:  # the same steps, slower
                print("no CUDA graph:", str(error).splitlines()[0], flush=True)
                self.advance = self._plain

    def __call__(self, ids: Tensor, rate: float) -> None:
        """Learn from these sequences at this rate."""
        self.ids.copy_(ids)
        self.rate.fill_(rate)
        self.advance()

    def _plain(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        loss_of(self.model, self.ids).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()

    def _capture(self) -> None:
        # The rate is zero here, so that only the moments change, and these start again.
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._plain()
        torch.cuda.current_stream().wait_stream(aside)
        self.optimiser.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._plain()
        self.advance = self.graph.replay
        for kept in self.optimiser.state.values():
            for tensor in kept.values():
                tensor.zero_()


def loss_of(model: nn.Module, ids: Tensor) -> Tensor:
    """The mean loss of the next byte, in bfloat16 products on a GPU."""
    # A cached cast would be stale in a replayed graph.
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.is_cuda, cache_enabled=False):
        logits = model(ids[:, :-1])
    return cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


def rate_at(step: int, setting: Setting) -> float:
    """The rate: up over the first tenth of the steps, then down to zero in a straight line."""
    rise = max(1, setting.steps // 10)
    share = min((step + 1) / rise, (setting.steps - step) / (setting.steps - rise))
    return setting.rate * min(1.0, share)


def trained(
    text: Text, setting: Setting, latent: int | None, seed: int, device: str
) -> tuple[dict[str, Any], list[nn.Module]]:
    """Train one model; return its losses, and its copies on the CPU before and after."""
    torch.manual_seed(seed)
    model = Model(setting, latent)
    before, model = deepcopy(model), model.to(device)
    step, starts = Step(model, setting, device), text.starts(setting.steps, seed)
    begin = time.perf_counter()
    for number in range(setting.steps):
        step(text.batch(starts[number]), rate_at(number, setting))
    judged = text.judged(512 if device == "cuda" else 16, seed=5)
    with torch.no_grad():
        losses = [float(loss_of(model, part)) for part in judged.split(64)]
        training = float(loss_of(model, text.batch(starts[-1])))
    cached = 2 * setting.width if latent is None else latent + setting.head_dim // 2
    row = {
        "latent": latent,
        "seed": seed,
        "parameters": _parameters(model),
        "cached numbers per token and layer": cached,
        "seconds": time.perf_counter() - begin,
        "held_out_loss": sum(losses) / len(losses),
        "last_training_loss": training,
    }
    return row, [before, model.cpu()]


def ranks(model: nn.Module, probe: Tensor) -> list[dict[str, float]]:
    """Means over the heads of each layer, in float64."""
    found = scan(model, probe)
    return [
        {name: sum(getattr(row, name) for row in rows) / len(rows) for name in MEASURES}
        for rows in map(found.of_layer, found.layers)
    ]


class Record:
    """The rows as a file, written again whenever the heads of a model are measured."""

    def __init__(self, path: Path, facts: dict[str, Any], probe: Tensor) -> None:
        self.path, self.facts, self.probe = path, facts, probe
        self.pool, self.left = ThreadPoolExecutor(1), []

    def measure(self, row: dict[str, Any], models: list[nn.Module]) -> None:
        """Measure these models beside what comes next, then keep the row."""
        self.left.append(self.pool.submit(self._keep, row, models))

    def _keep(self, row: dict[str, Any], models: list[nn.Module]) -> None:
        start, end = (ranks(model, self.probe) for model in models)
        self.facts["rows"].append(row | {"start": start, "trained": end})
        self.path.write_text(json.dumps(self.facts, indent=1))

    def finish(self) -> None:
        """Wait for the last row; an error of any of them ends the program."""
        for each in self.left:
            each.result()


def main() -> None:
    """Train the models in turn, writing after each, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing new after these")
    parser.add_argument("--steps", type=int, help="steps of each model")
    parser.add_argument("--text", type=Path, help="the text; the standard library's by default")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    begin, setting = time.perf_counter(), SMALL if given.small else Setting()
    if given.steps:
        setting = replace(setting, steps=given.steps)
    text = Text(given.text, setting, given.device)
    dtype = "float32 weights, bfloat16 products" if given.device == "cuda" else "float32"
    facts: dict[str, Any] = {"provenance": provenance(given.device, dtype, setting.seeds[0])}
    facts |= {"setting": asdict(setting), "rows": []}
    record = Record(given.out, facts, text.judged(2, seed=7)[:, :-1].cpu())
    for seed in setting.seeds:
        for latent in (None, *setting.latents):
            if time.perf_counter() - begin > given.seconds:
                break
            row, models = trained(text, setting, latent, seed, given.device)
            print(row, flush=True)
            record.measure(row, models)
    record.finish()
    print(f"{time.perf_counter() - begin:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
