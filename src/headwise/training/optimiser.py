"""AdamW for all members at once, on one flat matrix with a row of parameters for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headwise.training.settings import AdamW, Member, Settings


class FlatParameters:
    """Where each parameter lies in a row of numbers.

    >>> layout = FlatParameters({"a": torch.ones(2, 3), "b": torch.zeros(2, 2, 2)})
    >>> flat = layout.join([torch.ones(2, 3), torch.zeros(2, 2, 2)])
    >>> flat.shape, layout.cut(flat)["b"].shape
    (torch.Size([2, 7]), torch.Size([2, 2, 2]))
    """

    def __init__(self, stacked: Mapping[str, Tensor]) -> None:
        self.shapes = {name: value.shape[1:] for name, value in stacked.items()}

    def join(self, values: Sequence[Tensor]) -> Tensor:
        """One matrix, a row per member."""
        return torch.cat(
            [value.flatten(1) if value.ndim > 1 else value[:, None] for value in values], 1
        )

    def cut(self, flat: Tensor) -> dict[str, Tensor]:
        """Views into the matrix, by name."""
        pieces = flat.split([shape.numel() for shape in self.shapes.values()], dim=1)
        return {
            name: piece.view(len(flat), *shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }


def schedule(settings: Settings, warm_ups: Sequence[float | int]) -> Tensor:
    """For each step: the share of the learning rate, with both bias corrections of Adam.

    Columns: 1 / √(1 − β₂^t), then rate / (1 − β₁^t) for each warm-up. On the device as a table,
    so that a step needs no number from the host.

    >>> schedule(Settings(steps=4), [0.5, 0.1]).shape
    torch.Size([4, 3])
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
    """The learning rate of a step as a share of the full one: a ramp, then half a cosine.

    >>> [round(rate_share(step, 100, warm_up=0.1), 3) for step in (0, 4, 9, 10, 55, 99)]
    [0.1, 0.5, 1.0, 1.0, 0.5, 0.0]
    """
    ramp = round(warm_up * steps)
    if step < ramp:
        return (step + 1) / ramp
    return 0.5 * (1 + math.cos(math.pi * (step - ramp) / max(1, steps - ramp)))


class Optimiser:
    """AdamW, each member with its learning rate and schedule; who is not alive stays as it is."""

    def __init__(self, settings: Settings, members: Sequence[Member]) -> None:
        device, dtype = settings.device, settings.dtype
        self.constants: AdamW = settings.optimiser
        rates, warm_ups = zip(*((m.learning_rate, m.warm_up) for m in members), strict=True)
        self.rates = torch.tensor(rates, dtype=dtype, device=device).unsqueeze(1)
        # A column for each warm-up there is, not for each member: runs are long, members many.
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
        """One step, in place."""
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
        """What this step takes of each member's rate, a column; one number if all share it."""
        shares = row[:, 1:].mT
        return shares if self.columns is None else shares.index_select(0, self.columns)

    def _uncorrected(self, step: Tensor) -> Tensor:
        """1 − β₁^t: weight decay goes with the rate alone."""
        return 1 - self.constants.betas[0] ** (step + 1).to(self.table.dtype)
