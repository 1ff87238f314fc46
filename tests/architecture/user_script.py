"""A user's script, read by type checkers and never run: every public name has a real type."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import torch

import headwise
from headwise import HeadGeometry, HeadwiseError, Progress, RankMonitor
from headwise.advice import Advice
from headwise.attention import Attention, AttentionView, Ranks
from headwise.papers.reproduce import Reproduction
from headwise.probing import Scan
from headwise.reduction import Reduction
from headwise.spectra import Measurement
from headwise.theory import Bound, Law, Prediction
from headwise.trials import Trial


class Quiet:
    """A user's own progress display."""

    def start(self, task: str, total: int) -> None: ...
    def show(self, item: str) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def log(self, line: str) -> None: ...
    def stop(self) -> None: ...


def measured(matrix: torch.Tensor) -> float:
    found = headwise.measure(matrix)
    assert_type(found, Measurement)
    assert_type(headwise.Relative(0.01), headwise.Relative)
    return float(found.stable_rank)


def advised(tokens: torch.Tensor) -> int:
    answer = headwise.advise(tokens, width=96)
    assert_type(answer, Advice)
    return answer.rank.rank


def built() -> torch.nn.Module:
    geometry = HeadGeometry.free(width=64, heads=256, rank=4)
    assert_type(geometry, HeadGeometry)
    layer = headwise.mha(geometry)
    assert_type(layer, Attention)
    return layer


def counted(matrix: torch.Tensor) -> int:
    found = headwise.rank(matrix, tolerance="relative:1e-6", progress=Quiet())
    assert_type(found, Ranks)
    return int(found)


def predicted(length: int) -> float:
    curve = headwise.law(length, [16, 64], mask="causal")
    assert_type(curve, Law)
    least = headwise.bound(64, 8, heads=curve.critical_head_dim)
    assert_type(least, Bound)
    one = headwise.expected_rank(length, 64)
    assert_type(one, Prediction)
    return one.ratio + least.error


def scanned(model: torch.nn.Module, inputs: torch.Tensor) -> list[str]:
    def receive(name: str, view: AttentionView) -> None:
        print(name, view.shape)

    with headwise.capture(model, receive):
        model(inputs)
    found = headwise.scan(model, inputs, heads=[0])
    assert_type(found, Scan)
    found.to_frame()
    return found.layers


def reduced(folder: Path, text: str) -> torch.nn.Module:
    found = headwise.reduce(folder, text, kv_bytes="50%", out="smaller")
    assert_type(found, Reduction)
    model: torch.nn.Module = headwise.load("smaller")
    return model


def compared(data: torch.Tensor, labels: torch.Tensor) -> int:
    pair = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
    found = headwise.trial(data, labels, width=8, candidates=pair)
    assert_type(found, Trial)

    def batches(seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        yield data, labels

    own = headwise.trial_of(headwise.mha, batches, pair, steps=10)
    assert_type(own, Trial)
    return own.best.geometry.heads


def reproduced() -> Reproduction:
    names = [row["exhibit"] for row in headwise.list_exhibits("rank2026")]
    found = headwise.reproduce(names, from_records=True)
    assert_type(found, Reproduction)
    found.plot()
    print(headwise.__version__)
    return found


def watched(inputs: torch.Tensor) -> RankMonitor:
    try:
        return RankMonitor(inputs)
    except HeadwiseError as error:
        print(error.hint)
        raise


progress: Progress = Quiet()
