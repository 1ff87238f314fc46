"""A user's script, read by type checkers and never run: every public name has a real type."""

from typing import assert_type

import torch

import headwise
from headwise import HeadGeometry, HeadwiseError, Progress, RankMonitor
from headwise.advice import Advice
from headwise.spectra import Measurement


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
    return headwise.mha(geometry)


def watched(inputs: torch.Tensor) -> RankMonitor:
    try:
        return RankMonitor(inputs)
    except HeadwiseError as error:
        print(error.hint)
        raise


progress: Progress = Quiet()
