"""AdamW for all members at once, on one flat matrix with a row of parameters for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from headwise.training.settings import AdamW, Settings


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


def schedule(settings: Settings) -> Tensor:
    """For each step: the share of the learning rate, with both bias corrections of Adam.

    Columns: rate / (1 − β₁^t), and 1 / √(1 − β₂^t). On the device as a table, so that a step
    needs no number from the host.

    >>> schedule(Settings(steps=4, warm_up=0.5)).shape
    torch.Size([4, 2])
    """
    first, second = settings.optimiser.betas
    rows = [
        (rate_share(step, settings) / (1 - first ** (step + 1)), (1 - second ** (step + 1)) ** -0.5)
        for step in range(settings.steps)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def rate_share(step: int, settings: Settings) -> float:
    """The learning rate of a step as a share of the full one: a ramp, then half a cosine.

    >>> settings = Settings(steps=100, warm_up=0.1)
    >>> [round(rate_share(step, settings), 3) for step in (0, 4, 9, 10, 55, 99)]
    [0.1, 0.5, 1.0, 1.0, 0.5, 0.0]
    """
    ramp = round(settings.warm_up * settings.steps)
    if step < ramp:
        return (step + 1) / ramp
    return 0.5 * (1 + math.cos(math.pi * (step - ramp) / max(1, settings.steps - ramp)))


class Optimiser:
    """AdamW with a learning rate per member; members that are not alive stay as they are."""

    def __init__(self, settings: Settings, rates: Sequence[float]) -> None:
        device, dtype = settings.device, settings.dtype
        self.constants: AdamW = settings.optimiser
        self.table = schedule(settings).to(device=device, dtype=dtype)
        self.rates = torch.tensor(rates, dtype=dtype, device=device).unsqueeze(1)

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
        share = self.table.index_select(0, step.view(1))
        rates = self.rates * share[:, :1] * alive.unsqueeze(1)
        if self.constants.weight_decay:
            flat.sub_(flat * (rates * self._uncorrected(step) * self.constants.weight_decay))
        spread = square.sqrt().mul_(share[:, 1:]).add_(self.constants.epsilon)
        flat.sub_(mean.div(spread).mul_(rates))

    def _uncorrected(self, step: Tensor) -> Tensor:
        """1 − β₁^t: weight decay goes with the rate alone."""
        return 1 - self.constants.betas[0] ** (step + 1).to(self.table.dtype)
