"""Latent attention against its twin: the rank of trained heads, and the loss, by latent size.

Two causal language models on bytes of English prose: one with a full query-key map, one that makes
keys and values from a shared latent vector (as DeepSeek does). Every pair costs the same number of
parameters: what the latent saves goes into the MLP. All are trained on the same batches.

    python -m benchmarks.latent_twins --device cuda --seconds 240 --out FILE.json
    python -m benchmarks.latent_twins --device cpu --small --out FILE.json
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import code_version
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from headwise.attention import HeadGeometry, LatentGeometry, mha, mla
from headwise.probing import scan


@dataclass(frozen=True)
class Setting:
    """The sizes that all models share."""

    width: int = 256
    heads: int = 8
    layers: int = 4
    tokens: int = 256
    batch: int = 64
    steps: int = 1500
    rate: float = 1e-3
    latents: tuple[int, ...] = (16, 32, 64, 128, 256)
    seeds: tuple[int, ...] = (0, 1)


SMALL = Setting(32, 4, 2, 32, 4, 6, 1e-3, (8, 16), (0,))


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
    """Bytes in, logits of the next byte out; positions are learned and added."""

    def __init__(self, setting: Setting, latent: int | None) -> None:
        super().__init__()
        width = setting.width
        layers = [_attention(setting, latent) for _ in range(setting.layers)]
        budget = _parameters(_attention(setting, None)) + 2 * width * 4 * width
        hidden = (budget - _parameters(layers[0])) // (2 * width)
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Parameter(0.02 * torch.randn(setting.tokens, width))
        self.blocks = nn.ModuleList(Block(layer, width, hidden) for layer in layers)
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the next byte at each place."""
        tokens = self.bytes(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            tokens = block(tokens)
        return self.out(self.norm(tokens))


def _attention(setting: Setting, latent: int | None) -> nn.Module:
    if latent is None:
        return mha(HeadGeometry.standard(setting.width, heads=setting.heads))
    rank = setting.width // setting.heads
    return mla(
        LatentGeometry(
            width=setting.width,
            heads=setting.heads,
            kv_heads=setting.heads,
            qk_rank=rank,
            v_rank=rank,
            kv_latent=latent,
            q_latent=None,
            rope_rank=0,
        )
    )


def _parameters(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def prose() -> Tensor:
    """English prose of the standard library, as bytes."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    return torch.tensor(list(text.encode("utf-8", "ignore")), dtype=torch.uint8)


def batch_of(data: Tensor, setting: Setting, generator: torch.Generator) -> Tensor:
    """Draw sequences of one byte more than the model sees."""
    starts = torch.randint(len(data) - setting.tokens - 1, (setting.batch,), generator=generator)
    return torch.stack([data[s : s + setting.tokens + 1] for s in starts.tolist()]).long()


def trained(setting: Setting, latent: int | None, seed: int, device: str) -> dict[str, Any]:
    """Train one model and measure its heads and its loss on the last tenth of the text."""
    data = prose()
    cut = len(data) * 9 // 10
    torch.manual_seed(seed)
    model = Model(setting, latent).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), setting.rate, betas=(0.9, 0.95))
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, setting.rate, total_steps=setting.steps, pct_start=0.1
    )
    generator, start = torch.Generator().manual_seed(1000 + seed), time.perf_counter()
    probe = batch_of(data[cut:], setting, torch.Generator().manual_seed(7))[:2, :-1].to(device)
    first = _ranks(model, probe)
    for _ in range(setting.steps):
        ids = batch_of(data[:cut], setting, generator).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(ids[:, :-1])
        loss = cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
    seconds = time.perf_counter() - start
    return {
        "latent": latent,
        "seed": seed,
        "parameters": _parameters(model),
        "seconds": seconds,
        "loss": _loss(model, data[cut:], setting, device),
        "start": first,
        "trained": _ranks(model, probe),
    }


@torch.no_grad()
def _loss(model: nn.Module, data: Tensor, setting: Setting, device: str) -> float:
    generator, losses = torch.Generator().manual_seed(5), []
    for _ in range(8):
        ids = batch_of(data, setting, generator).to(device)
        logits = model(ids[:, :-1]).float().flatten(0, 1)
        losses.append(float(cross_entropy(logits, ids[:, 1:].flatten())))
    return sum(losses) / len(losses)


def _ranks(model: nn.Module, probe: Tensor) -> list[dict[str, float | None]]:
    """Means over the heads of each layer, measured on the CPU."""
    device = next(model.parameters()).device
    found = scan(model.cpu(), probe.cpu())
    model.to(device)
    names = ("coarse_rank", "rank", "effective_rank", "hardmax_rank", "query_key_rank")
    names += ("output_rank", "logit_scale")
    return [
        {name: sum(getattr(row, name) for row in rows) / len(rows) for name in names}
        for rows in map(found.of_layer, found.layers)
    ]


def main() -> None:
    """Train the pairs in turn, writing after each, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing new after these")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    setting = SMALL if given.small else Setting()
    made: dict[str, Any] = {"code": code_version(), "torch": torch.__version__}
    made |= {"device": given.device, "setting": asdict(setting), "rows": []}
    begin = time.perf_counter()
    for seed in setting.seeds:
        for latent in (None, *setting.latents):
            if time.perf_counter() - begin > given.seconds:
                return
            row = trained(setting, latent, seed, given.device)
            made["rows"].append(row)
            print({name: row[name] for name in ("latent", "seed", "loss", "seconds")}, flush=True)
            given.out.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
