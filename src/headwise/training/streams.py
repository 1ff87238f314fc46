"""The noise each member trains on, from streams of its own, fresh or fixed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.data import Batch, Task
from headwise.randomness import stream
from headwise.training.settings import Fixed, Member, Settings


class FreshNoise:
    """New noise at each step; the state is that of one generator per member."""

    def __init__(self, task: Task, members: Sequence[Member], settings: Settings) -> None:
        self.task, self.batch = task, settings.batch
        self.generators = [
            stream(member.seed, "training data", device=settings.device) for member in members
        ]

    def prepare(self, step: int) -> None:
        """Nothing: every step draws."""

    def draw(self, step: Tensor) -> Tensor:
        """The noise of one batch for every member."""
        return torch.stack([self.task.noise(self.batch, one) for one in self.generators])


class FixedNoise:
    """The noise of a set drawn once, repeated each epoch; nothing of it needs saving."""

    def __init__(self, task: Task, members: Sequence[Member], settings: Settings) -> None:
        assert isinstance(settings.protocol, Fixed)
        self.generators: list[torch.Generator] = []
        self.members, self.order = tuple(members), settings.protocol.order
        self.sequences, self.batch = settings.protocol.sequences, settings.batch
        self.batches = self.sequences // self.batch
        drawn = {
            seed: task.noise(self.sequences, stream(seed, "fixed set", device=settings.device))
            for seed in {member.seed for member in members}
        }
        self.noise = torch.stack([drawn[member.seed] for member in members])
        self.rows = torch.arange(len(members), device=settings.device).unsqueeze(1)
        self.numbers = torch.arange(self.sequences, device=settings.device).repeat(len(members), 1)
        self.epoch: int | None = None

    def prepare(self, step: int) -> None:
        """Before an epoch: its order, from a stream of its own."""
        epoch = step // self.batches
        if self.order == "same" or epoch == self.epoch:
            return
        self.epoch = epoch
        orders = [
            torch.randperm(self.sequences, generator=stream(member.seed, "order", epoch))
            for member in self.members
        ]
        self.numbers.copy_(torch.stack(orders))

    def draw(self, step: Tensor) -> Tensor:
        """The noise of this step's part of the set for every member."""
        part = (step % self.batches).view(1)
        chosen = self.numbers.unflatten(1, (self.batches, self.batch)).index_select(1, part)
        return self.noise[self.rows, chosen.squeeze(1)]


Noise = FreshNoise | FixedNoise


def training_noise(task: Task, members: Sequence[Member], settings: Settings) -> Noise:
    """The noise of the protocol the settings name.

    >>> from headwise.data import FarthestNeighbour
    >>> settings = Settings(steps=1, batch=3, seeds=(0, 1))
    >>> noise = training_noise(FarthestNeighbour(4, 2), settings.members([""]), settings)
    >>> noise.draw(torch.tensor(0)).shape
    torch.Size([2, 3, 2, 4])
    """
    kind = FixedNoise if isinstance(settings.protocol, Fixed) else FreshNoise
    return kind(task, members, settings)


def examination(task: Task, members: Sequence[Member], settings: Settings) -> Batch:
    """Test data of every member, from a stream that training never asks."""
    drawn = {
        seed: task.examine(settings.evaluation, stream(seed, "test data", device=settings.device))
        for seed in {member.seed for member in members}
    }
    own = [drawn[member.seed] for member in members]
    inputs = tuple(torch.stack(parts) for parts in zip(*(b.inputs for b in own), strict=True))
    targets = tuple(torch.stack(parts) for parts in zip(*(b.targets for b in own), strict=True))
    return cast(Batch(inputs, targets), settings.dtype)


def cast(batch: Batch, dtype: torch.dtype) -> Batch:
    """Floating numbers in this dtype; class numbers as they are.

    >>> cast(Batch((torch.ones(1),), (torch.tensor([3]),)), torch.float64).targets
    (tensor([3]),)
    """
    return Batch(
        tuple(t.to(dtype) if t.is_floating_point() else t for t in batch.inputs),
        tuple(t.to(dtype) if t.is_floating_point() else t for t in batch.targets),
    )
