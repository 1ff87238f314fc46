"""Train many models of one shape at once: stacked parameters, one batched graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor, nn
from torch.func import vmap

from headwise.data import Batch, EpochTask, Task
from headwise.devices import refuse_absent
from headwise.training.curve import CurveRow
from headwise.training.description import described
from headwise.training.misfits import Builder, refuse_misfits, refuse_no_builder
from headwise.training.optimiser import FlatParameters, Optimiser
from headwise.training.precision import exact_products, products, rounded
from headwise.training.settings import Settings
from headwise.training.stacking import Stacked, StackedModules, stack
from headwise.training.stacks import written_out
from headwise.training.state import State
from headwise.training.streams import cast, examination, training_noise


class Ensemble:
    """Members that train together: ``advance`` is one step of all of them.

    Each member has its own parameters, noise and learning rate. A member that diverges does not
    change the others.

    Args:
        variants: For each name a function that builds a model from a seed. The parameters of all
            models must have the same names and shapes.
        task: What to train on.
        settings: Steps, seeds, learning rates and the rest.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> from headwise.models import NeighbourShape
        >>> shape = NeighbourShape(width=4, tokens=3, rank=4, mlp_width=8)
        >>> settings = Settings(steps=2, batch=5, seeds=(0, 1))
        >>> ensemble = Ensemble({"full": shape.build}, FarthestNeighbour(4, 3), settings)
        >>> ensemble.advance()
        >>> int(ensemble.state.step), ensemble.state.last_loss.shape
        (1, torch.Size([2]))
    """

    def __init__(
        self, variants: Mapping[str, Builder], task: Task | EpochTask, settings: Settings
    ) -> None:
        self.variants, self.task, self.settings = dict(variants), task, settings
        refuse_absent(settings.device)
        refuse_no_builder(variants)
        self.members = settings.members(variants)
        models = [_placed(variants[m.variant](m.seed), settings) for m in self.members]
        groups = _groups([member.variant for member in self.members])
        compiled = settings.execution == "compiled"
        self.forward: Stacked = _stacked(models, groups, compiled=False)
        # Test data come in other sizes, and each size would be compiled again.
        self.trained = _stacked(models, groups, compiled) if compiled else self.forward
        stacked = stack(models)
        self.layout = FlatParameters(stacked)
        self.state = State.begin(self.layout.join(list(stacked.values())))
        self.optimiser = Optimiser(settings, self.members)
        self.update = (
            torch.compile(self.optimiser.update, dynamic=False)
            if compiled
            else self.optimiser.update
        )
        self.noise = training_noise(task, self.members, settings)
        self.tested = examination(task, self.members, settings)

    @cached_property
    def identity(self) -> str:
        """What must be equal for a run to resume from a checkpoint, one line for each part."""
        told = [f"{f.name}={getattr(self.settings, f.name)!r}" for f in fields(self.settings)]
        told.append(f"task={described(self.task)}")
        shapes = [f"{name}: {tuple(shape)}" for name, shape in self.layout.shapes.items()]
        return "\n".join([*told, f"variants={list(self.variants)}", *shapes])

    def advance(self) -> None:
        """Take one step of every member, in place; nothing is read back from the device."""
        state, settings = self.state, self.settings
        noise = self.noise.draw(state.step)
        losses, gradient = self.gradient(noise)
        state.note(losses, explosion=settings.explosion, epoch=settings.epoch)
        self.update(
            state.flat, (state.mean, state.square), gradient, step=state.step, alive=state.alive
        )
        state.step.add_(1)

    def gradient(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return losses (M) and gradients (M, P), averaged over micro-batches."""
        parts = self.settings.micro_batches
        found = [self._part_gradient(part) for part in noise.chunk(parts, dim=1)]
        losses, gradient = found[0]
        for more_losses, more_gradient in found[1:]:
            losses, gradient = losses + more_losses, gradient.add_(more_gradient)
        return (losses, gradient) if parts == 1 else (losses / parts, gradient.div_(parts))

    def _part_gradient(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        with exact_products():
            batch = cast(self.noise.seen(noise, self.state.step), self.settings.dtype)
        leaves = self.layout.cut(self.state.flat.detach())
        for leaf in leaves.values():
            leaf.requires_grad_()
        with products(self.settings):
            answers = self._answers(self.trained, leaves, batch)
            losses = vmap(self.task.loss)(answers, *batch.targets)
            gradients = torch.autograd.grad(losses.sum(), list(leaves.values()))
        return losses.detach(), self.layout.join(gradients)

    def _answers(self, forward: Stacked, parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
        with rounded(self.settings):
            try:
                return forward(parameters, batch.inputs).to(self.settings.dtype)
            except (RuntimeError, TypeError) as error:
                if not isinstance(error, torch.OutOfMemoryError):
                    refuse_misfits(self.variants, self.tested.inputs)
                raise

    @torch.no_grad()
    def examine(self) -> tuple[Tensor, Tensor]:
        """Return loss and score of every member on its test data."""
        size = max(1, self.settings.batch // self.settings.micro_batches)
        parameters = self.layout.cut(self.state.flat)
        total = len(self.tested.targets[0][0])
        losses, scores = self.state.flat.new_zeros(2, len(self.members))
        with products(self.settings):
            for first in range(0, total, size):
                part = Batch(*(tuple(t[:, first : first + size] for t in ts) for ts in self.tested))
                share = part.targets[0].shape[1] / total
                answers = self._answers(self.forward, parameters, part)
                losses = losses + share * vmap(self.task.loss)(answers, *part.targets)
                scores = scores + share * vmap(self.task.score)(answers, *part.targets)
        return losses, scores

    def rows(self) -> list[CurveRow]:
        """Return the current row of every member."""
        state, (test_loss, test_score) = self.state, self.examine()
        columns = {
            "train_loss": state.last_loss,
            "epoch_loss": state.epoch_loss,
            "best_epoch_loss": state.best_epoch_loss,
            "test_loss": test_loss,
            "test_score": test_score,
        }
        told = {name: [_finite(v) for v in column.tolist()] for name, column in columns.items()}
        step, alive, fell = int(state.step), state.alive.tolist(), state.diverged_at.tolist()
        return [
            CurveRow.of(i, member, step=step, **{name: told[name][i] for name in told})
            if alive[i]
            else CurveRow.of(
                i,
                member,
                step=step,
                diverged_at=fell[i],
                best_epoch_loss=told["best_epoch_loss"][i],
            )
            for i, member in enumerate(self.members)
        ]

    def parameters(self) -> dict[str, Tensor]:
        """Return a copy of all parameters by name, members first, on the CPU."""
        return {n: v.clone() for n, v in self.layout.cut(self.state.flat.cpu()).items()}


def _placed(model: nn.Module, settings: Settings) -> nn.Module:
    return model.to(device=settings.device, dtype=settings.dtype)


def _groups(variants: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first and one past the last member of each variant."""
    ends, found = 0, []
    for _, same in groupby(variants):
        first, ends = ends, ends + len(list(same))
        found.append((first, ends))
    return found


def _stacked(models: list[nn.Module], groups: list[tuple[int, int]], compiled: bool) -> Stacked:
    return written_out(models, groups, compiled) or StackedModules(models, groups)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
