"""Regression tasks of the sweeps: masked and noisy images, and what comes next in a sequence."""

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


@dataclass(frozen=True, eq=False)
class NoisyPatches(Drawn):
    """Images cut into patches, with N(0, 1) noise on every number; the model takes it off.

    ``trained`` and ``held_out`` are patches (images, tokens, numbers). The error is the squared
    distance of a patch.
    """

    trained: Tensor
    held_out: Tensor

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """The noise of each patch, and a last patch whose first number says which image."""
        return normal((count, self.trained.shape[1] + 1, self.trained.shape[2]), generator)

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """Noisy patches, and the patches."""
        # The normal distribution function makes a uniform number of a normal one.
        places = torch.special.ndtr(noise[..., -1, 0]) * len(self.trained)
        whole = self.trained[places.long().clamp(max=len(self.trained) - 1)]
        return Batch((whole + noise[..., :-1, :],), (whole,))

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """The first ``count`` images held out, each with one noise."""
        whole = self.held_out[:count].to(generator.device)
        return Batch((whole + normal(tuple(whole.shape), generator),), (whole,))

    def trivial(self) -> float:
        """The error of the best linear map of one patch alone."""
        given, wanted = self.examine(10**6, torch.Generator().manual_seed(0))
        return _linear_error(given[0], wanted[0])


@dataclass(frozen=True)
class NextWindow(Drawn):
    """The next four samples of a sum of two sines, from the windows of four before it.

    Amplitudes are N(0, 1), phases uniform, and frequencies uniform up to one period in four
    samples. The model predicts every next window; the score is the squared error of the last.
    """

    windows: int
    size: int = 4
    sines: int = 2

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """Amplitude, phase and frequency of each sine, as N(0, 1) numbers."""
        return normal((count, self.sines, 3), generator)

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """All windows but the last, and all but the first."""
        amplitude, phase, frequency = (part.unsqueeze(-1) for part in noise.unbind(-1))
        time = torch.arange((self.windows + 1) * self.size, device=noise.device)
        turns = torch.special.ndtr(phase) + torch.special.ndtr(frequency) * time / self.size
        samples = (amplitude * torch.sin(2 * torch.pi * turns)).sum(-2)
        found = samples.unflatten(-1, (self.windows + 1, self.size))
        return Batch((found[..., :-1, :],), (found[..., 1:, :],))

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared error of the last window, after all the others were seen."""
        return (outputs[..., -1, :] - targets[0][..., -1, :]).square().sum(-1).mean()

    def trivial(self) -> float:
        """The error of the best linear map of the window before alone."""
        given, wanted = self.examine(20_000, torch.Generator().manual_seed(0))
        return _linear_error(given[0], wanted[0])


def _linear_error(given: Tensor, wanted: Tensor) -> float:
    """The mean squared distance that least squares on single tokens leaves."""
    tokens, answers = given.flatten(0, -2).double(), wanted.flatten(0, -2).double()
    tokens = torch.cat([tokens, torch.ones_like(tokens[:, :1])], -1)
    solved = tokens @ torch.linalg.lstsq(tokens, answers).solution
    return float((solved - answers).square().sum(-1).mean())


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

    def __init__(
        self, stack: EncoderStack, numbers: int, *, causal: bool, hides: bool, seed: int
    ) -> None:
        super().__init__()
        self.stack, self.causal = stack, causal
        self.embedding = empty_linear(numbers, stack.token_width, biased=True)
        # Without hidden tokens nothing would train this vector.
        self.unknown = nn.Parameter(torch.zeros(stack.token_width)) if hides else None
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
    shape: Shape, numbers: int, *, causal: bool = False, hides: bool = False
) -> Callable[[HeadGeometry, int], nn.Module]:
    """One vector for each token of ``numbers``; with ``causal`` from the tokens before it.

    With ``hides`` some tokens are hidden.
    """
    return lambda geometry, seed: PatchRegressor(
        shape.stack(geometry, seed), numbers, causal=causal, hides=hides, seed=seed
    )
