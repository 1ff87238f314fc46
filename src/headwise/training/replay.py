"""Record one training step as a CUDA graph, then replay it with a single launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.training.state import State

#: Calls before recording, which compile and choose kernels and allocate workspaces.
WARM_UPS = 3


@dataclass(frozen=True, eq=False)
class Replay:
    """A recorded step. It keeps the tensors it was recorded from: a graph does not own them."""

    graph: torch.cuda.CUDAGraph
    advance: Callable[[], None]
    state: State

    def __call__(self) -> None:
        """Run the step again."""
        self.graph.replay()


def replayed(
    advance: Callable[[], None],
    state: State,
    generators: Sequence[torch.Generator],
    stream: torch.cuda.Stream | None = None,
) -> Replay:
    """Return ``advance`` recorded as a graph over the same tensors; the state stays as it was.

    The generators take part: each replay continues where the last one ended, as plain calls do. To
    run graphs side by side, record each on its own stream, since products keep one workspace per
    stream.
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
