"""The training noise of each member, from its own random stream, fresh or fixed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.data import Batch, EpochTask, Task
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
        """Do nothing: every step draws."""

    def draw(self, step: Tensor) -> Tensor:
        """Return the noise of one batch for every member."""
        return torch.stack([self.task.noise(self.batch, one) for one in self.generators])

    def seen(self, noise: Tensor, step: Tensor) -> Batch:
        """Return the batch made from this noise."""
        return self.task.batch(noise, step)


class FixedNoise:
    """The noise of a set drawn once and repeated each epoch; it needs no saving."""

    def __init__(self, task: Task, members: Sequence[Member], settings: Settings) -> None:
        assert isinstance(settings.protocol, Fixed)
        self.generators: list[torch.Generator] = []
        self.task = task
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
        """Draw the order of an epoch from its own stream."""
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
        """Return the noise of this step's part of the set for every member."""
        part = (step % self.batches).view(1)
        chosen = self.numbers.unflatten(1, (self.batches, self.batch)).index_select(1, part)
        return self.noise[self.rows, chosen.squeeze(1)]

    def seen(self, noise: Tensor, step: Tensor) -> Batch:
        """Return the batch made from this noise."""
        return self.task.batch(noise, step)


class EpochNoise:
    """Whole epochs of an ``EpochTask``, one per seed, made when they begin.

    Members with one seed see the same batches. Nothing needs saving: an epoch follows from the seed
    and its number.
    """

    def __init__(self, task: EpochTask, members: Sequence[Member], settings: Settings) -> None:
        self.generators: list[torch.Generator] = []
        self.task, self.batch, self.device = task, settings.batch, settings.device
        self.batches = len(task.parts.train.labels) // settings.batch
        self.seeds = list(dict.fromkeys(member.seed for member in members))
        streams = [self.seeds.index(member.seed) for member in members]
        self.rows = torch.tensor(streams, device=settings.device).unsqueeze(1)
        self.line = torch.arange(settings.batch, device=settings.device)
        self.epoch: int | None = None
        self.buffers: Batch | None = None
        self.prepare(0)

    def prepare(self, step: int) -> None:
        """Augment a whole epoch for every seed."""
        epoch = step // self.batches
        if epoch == self.epoch:
            return
        self.epoch = epoch
        for row, seed in enumerate(self.seeds):
            whole = self.task.epoch(seed, epoch, self.batch)
            if self.buffers is None:
                self.buffers = Batch(*(tuple(map(self._room, part)) for part in whole))
            for kept, new in zip(_all(self.buffers), _all(whole), strict=True):
                kept[row].copy_(new)

    def _room(self, tensor: Tensor) -> Tensor:
        shape = (len(self.seeds), *tensor.shape)
        return torch.empty(shape, dtype=tensor.dtype, device=self.device)

    def draw(self, step: Tensor) -> Tensor:
        """Return the places of this step's batch in the epoch, for every member."""
        return ((step % self.batches) * self.batch + self.line).expand(len(self.rows), -1)

    def seen(self, noise: Tensor, step: Tensor) -> Batch:
        """Return the samples at these places."""
        assert self.buffers is not None
        inputs, targets = (tuple(t[self.rows, noise] for t in ts) for ts in self.buffers)
        return Batch(self.task.present(*inputs), targets)


def _all(batch: Batch) -> tuple[Tensor, ...]:
    return (*batch.inputs, *batch.targets)


Noise = FreshNoise | FixedNoise | EpochNoise


def training_noise(task: Task | EpochTask, members: Sequence[Member], settings: Settings) -> Noise:
    """Return the noise of the protocol that the settings name."""
    if isinstance(task, EpochTask):
        return EpochNoise(task, members, settings)
    kind = FixedNoise if isinstance(settings.protocol, Fixed) else FreshNoise
    return kind(task, members, settings)


def examination(task: Task | EpochTask, members: Sequence[Member], settings: Settings) -> Batch:
    """Return the test data of every member, from a stream that training does not use."""
    drawn = {
        seed: task.examine(settings.evaluation, stream(seed, "test data", device=settings.device))
        for seed in {member.seed for member in members}
    }
    own = [drawn[member.seed] for member in members]
    inputs = tuple(torch.stack(parts) for parts in zip(*(b.inputs for b in own), strict=True))
    targets = tuple(torch.stack(parts) for parts in zip(*(b.targets for b in own), strict=True))
    return cast(Batch(inputs, targets), settings.dtype)


def cast(batch: Batch, dtype: torch.dtype) -> Batch:
    """Cast floating numbers to this dtype; leave class numbers as they are."""
    return Batch(
        tuple(t.to(dtype) if t.is_floating_point() else t for t in batch.inputs),
        tuple(t.to(dtype) if t.is_floating_point() else t for t in batch.targets),
    )
