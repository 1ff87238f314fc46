"""An ensemble over ids on a GPU: its step as a CUDA graph, its state as a checkpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from benchmarks.advice.language_model import block
from benchmarks.advice.language_training import Ensemble, Progress, losses_of

# ── speed on a GPU ──────────────────────────────────────────────────────────────────────────


def accelerate(ensemble: Ensemble, compiled: bool) -> None:
    """Compile the layers if wanted, and capture a step as a CUDA graph."""
    kept = ensemble.snapshot()
    if compiled:
        ensemble.model.block = torch.compile(block, dynamic=False)
        ensemble.losses = torch.compile(losses_of, dynamic=False)
    else:
        ensemble.model.block, ensemble.losses = block, losses_of
    ensemble.update = ensemble.plain_update
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            ensemble.advance(0, 0.0)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ensemble.plain_update()
    ensemble.update = graph.replay
    ensemble.restore(kept)


def milliseconds(ensemble: Ensemble, steps: int = 20) -> float:
    """The time of one step, measured without changing the state."""
    kept = ensemble.snapshot()
    ensemble.advance(0, 0.0)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        ensemble.advance(0, 0.0)
    torch.cuda.synchronize()
    ensemble.restore(kept)
    return (time.perf_counter() - start) / steps * 1e3


# ── checkpoints ─────────────────────────────────────────────────────────────────────────────


def save(path: Path, identity: str, ensemble: Ensemble, progress: Progress) -> None:
    """Write a checkpoint of the trunk; a kill while this runs leaves the old one whole."""
    content = {
        "identity": identity,
        "tensors": {name: tensor.cpu() for name, tensor in ensemble.tensors().items()},
        "progress": vars(progress),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(content, partial)
    partial.replace(path)


def resume(path: Path, identity: str, ensemble: Ensemble) -> Progress:
    """Take up the checkpoint if it is one of this run; begin otherwise."""
    if not path.exists():
        return Progress()
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    if content["identity"] != identity:
        return Progress()
    ensemble.restore({n: t.to(ensemble.device) for n, t in content["tensors"].items()})
    return Progress(**content["progress"])
