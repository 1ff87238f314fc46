"""AdamW for all members at once, on one flat matrix with a row per member."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headwise.training.settings import AdamW, Member, Settings


class FlatParameters:
    """The place of each parameter in a flat row of numbers."""

    def __init__(self, stacked: Mapping[str, Tensor]) -> None:
        self.shapes = {name: value.shape[1:] for name, value in stacked.items()}

    def join(self, values: Sequence[Tensor]) -> Tensor:
        """Join tensors into one matrix, a row per member."""
        return torch.cat(
            [value.flatten(1) if value.ndim > 1 else value[:, None] for value in values], 1
        )

    def cut(self, flat: Tensor) -> dict[str, Tensor]:
        """Return views into the matrix, by name."""
        pieces = flat.split([shape.numel() for shape in self.shapes.values()], dim=1)
        return {
            name: piece.view(len(flat), *shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }


def schedule(settings: Settings, warm_ups: Sequence[float | int]) -> Tensor:
    """Return a table of learning-rate factors for each step, with Adam's bias corrections.

    Columns: 1 / √(1 − β₂^t), then rate / (1 − β₁^t) for each warm-up. It lies on the device, so
    that a step needs no number from the host.
    """
    (first, second), steps = settings.optimiser.betas, settings.steps
    rows = [
        [
            (1 - second ** (step + 1)) ** -0.5,
            *(rate_share(step, steps, share) / (1 - first ** (step + 1)) for share in warm_ups),
        ]
        for step in range(steps)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def rate_share(step: int, steps: int, warm_up: float | int) -> float:
    """Return the learning rate of a step as a share of the full one: a ramp, then half a cosine."""
    ramp = round(warm_up * steps)
    if step < ramp:
        return (step + 1) / ramp
    return 0.5 * (1 + math.cos(math.pi * (step - ramp) / max(1, steps - ramp)))


class Optimiser:
    """AdamW with a learning rate and schedule per member; diverged members do not change."""

    def __init__(self, settings: Settings, members: Sequence[Member]) -> None:
        device, dtype = settings.device, settings.dtype
        self.constants: AdamW = settings.optimiser
        rates, warm_ups = zip(*((m.learning_rate, m.warm_up) for m in members), strict=True)
        self.rates = torch.tensor(rates, dtype=dtype, device=device).unsqueeze(1)
        # One column for each warm-up, not for each member, to save memory.
        known = list(dict.fromkeys(warm_ups))
        self.table = schedule(settings, known).to(device=device, dtype=dtype)
        columns = [known.index(own) for own in warm_ups]
        self.columns = torch.tensor(columns, device=device) if len(known) > 1 else None

    def update(
        self,
        flat: Tensor,
        moments: tuple[Tensor, Tensor],
        gradient: Tensor,
        *,
        step: Tensor,
        alive: Tensor,
    ) -> None:
        """Take one step, in place."""
        mean, square = moments
        first, second = self.constants.betas
        gradient = gradient.masked_fill(~alive.unsqueeze(1), 0.0)
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        row = self.table.index_select(0, step.view(1))
        rates = self.rates * self._shares(row) * alive.unsqueeze(1)
        if self.constants.weight_decay:
            flat.sub_(flat * (rates * self._uncorrected(step) * self.constants.weight_decay))
        spread = square.sqrt().mul_(row[:, :1]).add_(self.constants.epsilon)
        flat.sub_(mean.div(spread).mul_(rates))

    def _shares(self, row: Tensor) -> Tensor:
        """Return the factor of each member's rate at this step, a column or one number for all."""
        shares = row[:, 1:].mT
        return shares if self.columns is None else shares.index_select(0, self.columns)

    def _uncorrected(self, step: Tensor) -> Tensor:
        """Return 1 − β₁^t: weight decay depends only on the rate."""
        return 1 - self.constants.betas[0] ** (step + 1).to(self.table.dtype)
