"""The tensors that change while an ensemble trains, on its device."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(eq=False)
class State:
    """Parameters, moments, the step, and the losses of each member.

    Everything is changed in place, so that a replayed graph finds it.
    """

    flat: Tensor
    mean: Tensor
    square: Tensor
    step: Tensor
    alive: Tensor
    diverged_at: Tensor
    first_loss: Tensor
    last_loss: Tensor
    epoch_sum: Tensor
    epoch_loss: Tensor
    best_epoch_loss: Tensor

    @classmethod
    def begin(cls, flat: Tensor) -> State:
        """Make the state before the first step."""
        members = (len(flat),)
        whole = {"dtype": torch.int64, "device": flat.device}
        return cls(
            flat=flat,
            mean=torch.zeros_like(flat),
            square=torch.zeros_like(flat),
            step=torch.zeros((), **whole),
            alive=torch.ones(members, dtype=torch.bool, device=flat.device),
            diverged_at=torch.zeros(members, **whole),
            first_loss=flat.new_full(members, math.inf),
            last_loss=flat.new_full(members, math.nan),
            epoch_sum=flat.new_zeros(members),
            epoch_loss=flat.new_full(members, math.nan),
            best_epoch_loss=flat.new_full(members, math.inf),
        )

    def copies(self) -> dict[str, Tensor]:
        """Copy every tensor to the CPU."""
        return {
            part.name: getattr(self, part.name).detach().to("cpu", copy=True)
            for part in fields(self)
        }

    def restore(self, copies: dict[str, Tensor]) -> None:
        """Restore every tensor from the copies, in place."""
        for part in fields(self):
            getattr(self, part.name).copy_(copies[part.name])

    def note(self, losses: Tensor, *, explosion: float, epoch: int) -> None:
        """Record the losses of a step: which members diverged, and the means over epochs."""
        self.first_loss.copy_(torch.where(self.step == 0, losses, self.first_loss))
        sound = losses.isfinite() & (losses <= explosion * self.first_loss)
        fallen = self.alive & ~sound
        self.diverged_at.copy_(torch.where(fallen, self.step, self.diverged_at))
        self.alive.logical_and_(sound)
        self.last_loss.copy_(losses)
        self._note_epoch(losses, epoch)

    def _note_epoch(self, losses: Tensor, epoch: int) -> None:
        self.epoch_sum.add_(losses)
        over = (self.step + 1) % epoch == 0
        ended = over & self.alive
        self.epoch_loss.copy_(torch.where(ended, self.epoch_sum / epoch, self.epoch_loss))
        better = torch.minimum(self.best_epoch_loss, self.epoch_loss)
        self.best_epoch_loss.copy_(torch.where(ended, better, self.best_epoch_loss))
        self.epoch_sum.masked_fill_(over, 0.0)
