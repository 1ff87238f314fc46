"""Record one training step as a CUDA graph, then replay it with a single launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.training.state import State

#: Calls before recording: kernels are compiled and chosen, workspaces allocated.
WARM_UPS = 3


@dataclass(frozen=True, eq=False)
class Replay:
    """A recorded step. It keeps what it was recorded from: a graph does not own its tensors."""

    graph: torch.cuda.CUDAGraph
    advance: Callable[[], None]
    state: State

    def __call__(self) -> None:
        """The step once more."""
        self.graph.replay()


def replayed(
    advance: Callable[[], None],
    state: State,
    generators: Sequence[torch.Generator],
    stream: torch.cuda.Stream | None = None,
) -> Replay:
    """``advance`` as a graph over the same tensors; the state is left as it was found.

    The generators take part: each replay draws where the last one ended, as plain calls would.
    Graphs that are to run side by side are recorded on streams of their own, since products
    keep one workspace for each stream.
    """
    before = state.copies()
    drawn = [generator.get_state() for generator in generators]
    _warm_up(advance, state, before)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=stream):
        advance()
    state.restore(before)
    for generator, position in zip(generators, drawn, strict=True):
        generator.set_state(position)
    torch.cuda.synchronize()
    return Replay(graph, advance, state)


def _warm_up(advance: Callable[[], None], state: State, before: dict[str, Tensor]) -> None:
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UPS):
            advance()
            state.restore(before)  # a step beyond the last has no learning rate
    torch.cuda.current_stream().wait_stream(aside)
