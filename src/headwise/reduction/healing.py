"""Tune the cut layers for a few steps against the original's outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headwise.progress import SILENT, Progress, tracked
from headwise.reduction.families import attention_blocks, block_maps, embedded, is_encoder

#: The largest learning rate of AdamW; it falls to zero along half a cosine.
RATE = 3e-4


def heal_model(
    original: Any,
    made: Any,
    batches: Sequence[dict[str, Tensor]],
    *,
    steps: int,
    rate: float = RATE,
    seed: int = 0,
    progress: Progress = SILENT,
) -> list[float]:
    """Train the attention maps of a cut model to give the original's outputs.

    The loss is the divergence from the original's predictions, or for an encoder the squared
    change of its output.

    Args:
        original: The model before the cut.
        made: The cut model; changed in place.
        batches: Inputs; each step takes one.
        steps: Number of steps.
        rate: The largest learning rate.
        seed: Of the order of batches.
        progress: Where to report.

    Returns:
        The loss of every step.
    """
    maps = [block_maps(block, made.config) for block in attention_blocks(made)]
    chosen = [each for layer in maps for linear in layer.values() for each in linear.parameters()]
    between = ("k_restore.weight", "k_compress.weight")
    chosen += [p for name, p in made.named_parameters() if name.endswith(between)]
    wanted = {id(each) for each in chosen}
    for parameter in made.parameters():
        parameter.requires_grad_(id(parameter) in wanted)
    optimiser = torch.optim.AdamW(chosen, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(1.0, (step + 1) / 20) * (1 + math.cos(math.pi * step / steps)) / 2,
    )
    generator = torch.Generator().manual_seed(seed)
    losses, order = [], []
    with tracked(progress, "healing", steps) as bar:
        for _ in range(steps):
            order = order or torch.randperm(len(batches), generator=generator).tolist()
            loss = _distance(original, made, batches[order.pop()])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(chosen, 1.0)
            optimiser.step()
            falling.step()
            losses.append(float(loss.detach()))
            bar.advance()
    made.requires_grad_(True)
    return losses


def _distance(original: Any, made: Any, batch: dict[str, Tensor]) -> Tensor:
    device = next(made.parameters()).device
    batch = {name: each.to(device) for name, each in batch.items()}
    if is_encoder(original.config):
        with torch.no_grad():
            target = embedded(original, batch)
        return (embedded(made, batch) - target).square().mean()
    with torch.no_grad():
        expected = original(**batch).logits
    p, q = (each.float().log_softmax(-1) for each in (expected, made(**batch).logits))
    return nn.functional.kl_div(q, p, log_target=True, reduction="sum") / p[..., 0].numel()
