"""Regression tasks of the sweeps: the masked half of an image, and the next state of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from benchmarks.advice.models import Shape
from torch import Tensor, nn

from headwise.attention import Causal, Everything, FanIn, HeadGeometry
from headwise.attention.initialisation import empty_linear
from headwise.data import Batch, Drawn
from headwise.data.tasks import normal
from headwise.models import EncoderStack


@dataclass(frozen=True, eq=False)
class MaskedPatches(Drawn):
    """Images cut into patches of which half are hidden; the model returns what they hold.

    ``trained`` and ``held_out`` are patches (images, tokens, numbers). The error is the squared
    distance of a hidden patch, as a mean over those of an image.
    """

    trained: Tensor
    held_out: Tensor

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """Which image, and one number for each patch: the lower half is hidden."""
        size = (count, self.trained.shape[1] + 1)
        return torch.rand(size, generator=generator, device=generator.device)

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """Patches with zeros where they are hidden, and which those are."""
        chosen = (noise[..., 0] * len(self.trained)).long()
        return self._hidden(self.trained[chosen], noise[..., 1:])

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """The first ``count`` images held out, each with one mask."""
        patches = self.held_out[:count].to(generator.device)
        size = patches.shape[:2]
        draws = torch.rand(size, generator=generator, device=generator.device)
        return self._hidden(patches, draws)

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared error of hidden patches."""
        patches, hidden = targets
        errors = (outputs - patches).square().sum(-1)
        return (errors * hidden).sum(-1).mean() / (patches.shape[-2] // 2)

    def trivial(self) -> float:
        """The error of the mean patch at each place, which needs no other token."""
        mean = self.trained.mean(0)
        return float((self.held_out - mean).square().sum(-1).mean())

    @staticmethod
    def _hidden(patches: Tensor, draws: Tensor) -> Batch:
        order = draws.argsort(-1).argsort(-1)
        hidden = (order < patches.shape[-2] // 2).to(patches.dtype)
        return Batch((patches * (1 - hidden.unsqueeze(-1)), hidden), (patches, hidden))


@dataclass(frozen=True)
class NextState(Drawn):
    """States that one hidden rotation moves on, x_{t+1} = R x_t; each sequence has its own.

    R is a product of ``dimensions`` reflections at N(0, 1) vectors, so it is uniform up to its
    sign. The model predicts every next state; the score is the squared error of the last.
    """

    dimensions: int
    states: int

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1): the first state, and behind it the reflections."""
        return normal((count, self.dimensions + 1, self.dimensions), generator)

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """All states but the last, and all but the first."""
        state, mirrors = noise[..., 0, :], noise[..., 1:, :]
        mirrors = mirrors / mirrors.norm(dim=-1, keepdim=True)
        found = [state]
        for _ in range(self.states):
            for mirror in mirrors.unbind(-2):
                state = state - 2 * mirror * (state * mirror).sum(-1, keepdim=True)
            found.append(state)
        states = torch.stack(found, dim=-2)
        return Batch((states[..., :-1, :],), (states[..., 1:, :],))

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared error of the last state, after all the others were seen."""
        return (outputs[..., -1, :] - targets[0][..., -1, :]).square().sum(-1).mean()

    def trivial(self) -> float:
        """The error of zero: without other tokens the next state is uniform on a sphere."""
        return float(self.dimensions)


class PatchRegressor(nn.Module):
    """A linear map, the stack, and a linear map; a learned vector is added to hidden tokens."""

    def __init__(self, stack: EncoderStack, numbers: int, *, causal: bool, seed: int) -> None:
        super().__init__()
        self.stack, self.causal = stack, causal
        self.embedding = empty_linear(numbers, stack.token_width, biased=True)
        # Causal models see every token, so nothing would train this vector.
        self.unknown = None if causal else nn.Parameter(torch.zeros(stack.token_width))
        self.readout = empty_linear(stack.geometry.width, numbers, biased=True)
        drawn = FanIn(seed)
        drawn.fill_input(self.embedding, "embedding")
        drawn.fill_input(self.readout, "readout")

    def forward(self, tokens: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return one vector for each token."""
        found = self.embedding(tokens)
        if hidden is not None and self.unknown is not None:
            found = found + hidden.unsqueeze(-1) * self.unknown
        return self.readout(self.stack(found, Causal() if self.causal else Everything()))


def token_regressor(
    shape: Shape, numbers: int, *, causal: bool
) -> Callable[[HeadGeometry, int], nn.Module]:
    """One vector for each token of ``numbers``; with ``causal`` from the tokens before it."""
    return lambda geometry, seed: PatchRegressor(
        shape.stack(geometry, seed), numbers, causal=causal, seed=seed
    )
