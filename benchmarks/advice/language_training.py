"""Training of a stacked ensemble over ids: one run at a constant rate, with decayed branches.

A length of training is a branch: the rate falls to zero over the last fifth of its steps. The
branches leave one common trunk, so lengths of 1,000, 2,000, 4,000 and 8,000 steps cost 9,400
steps instead of 15,000, and each length has its own complete schedule. The trunk's
validation losses are the learning curve.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from benchmarks.advice.language_model import (
    Member,
    Parameters,
    StackedModel,
    block,
    initial_parameters,
)
from benchmarks.advice.language_tasks import Batch, Loaded
from torch import Tensor
from torch.nn.functional import cross_entropy

#: The share of a run over which the rate falls.
DECAY = 0.2

#: Steps over which the rate rises.
WARM_UP = 100

BETAS, EPSILON, WEIGHT_DECAY, CLIP = (0.9, 0.95), 1e-8, 0.1, 1.0


def decay_start(length: int) -> int:
    """The step at which the branch of this length leaves the trunk."""
    return length - int(DECAY * length)


def losses_of(logits: Tensor, answers: Tensor) -> Tensor:
    """The mean loss of each member, in float32 whatever the logits are."""
    each = cross_entropy(logits.float().flatten(0, 1), answers.flatten(), reduction="none")
    return each.view(answers.shape).mean(1)


@dataclass
class Progress:
    """What is known of a run besides its tensors."""

    step: int = 0
    updates: int = 0
    done: list[int] = field(default_factory=list)
    curve: list[tuple[int, list[float]]] = field(default_factory=list)
    seconds: float = 0.0


class Ensemble:
    """All members with their optimiser state, on one device."""

    def __init__(self, loaded: Loaded, members: Sequence[Member]) -> None:
        self.loaded, self.members, self.device = loaded, tuple(members), loaded.device
        self.model = StackedModel(loaded.task.shape, members)
        self.losses: Callable[[Tensor, Tensor], Tensor] = losses_of
        drawn = initial_parameters(loaded.task.shape, members)
        self.flat, self.parts = _laid_out(drawn, self.device)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.gradient = torch.zeros_like(self.flat)
        self.count = torch.zeros((), device=self.device)
        self.rates = {
            rate: torch.zeros((), device=self.device) for rate in {m.rate for m in members}
        }
        self.train_loss = torch.zeros(len(members), device=self.device)
        self.seeds = sorted({member.seed for member in members})
        self.row_of_seed = torch.tensor(
            [self.seeds.index(member.seed) for member in members], device=self.device
        )
        self._lists = self._optimiser_lists()
        self.held: Batch | None = None
        self.validation = loaded.validation()
        self.update: Callable[[], None] = self.plain_update

    # ── one step ────────────────────────────────────────────────────────────────────────────

    def advance(self, step: int, share: float) -> None:
        """One optimiser step at ``share`` of each member's rate."""
        for rate, current in self.rates.items():
            current.fill_(rate * share)
        self._take(self.batch(step))
        self.update()

    def batch(self, step: int) -> Batch:
        """The batches of all seeds, and from them those of all members."""
        drawn = [self.loaded.batch(seed, step) for seed in self.seeds]
        ids = torch.stack([one.ids for one in drawn])[self.row_of_seed]
        answers = torch.stack([one.answers for one in drawn])[self.row_of_seed]
        asked = None
        if drawn[0].asked is not None:
            asked = torch.stack([one.asked for one in drawn])[self.row_of_seed]  # type: ignore[misc]
        return Batch(ids, asked, answers)

    def _take(self, batch: Batch) -> None:
        """Keep batches at one place, where a replayed graph finds them."""
        if self.held is None:
            self.held = batch
            return
        for own, new in zip(self.held, batch, strict=True):
            if own is not None:
                own.copy_(new)

    def plain_update(self) -> None:
        """Forward, backward and optimiser on the batches that were taken."""
        assert self.held is not None
        leaves = {name: part.requires_grad_() for name, part in self._working().items()}
        logits = self.model(leaves, self.held.ids, self.held.asked)
        losses = self.losses(logits, self.held.answers)
        found = torch.autograd.grad(losses.sum(), list(leaves.values()))
        self.train_loss.lerp_(losses.detach(), 0.02)
        gradients = [self._view(self.gradient, name) for name in leaves]
        torch._foreach_copy_(gradients, list(found))
        self._clip(gradients, list(leaves))
        self._adamw()

    def _working(self) -> dict[str, Tensor]:
        """The parameters as the products take them: bfloat16 on a GPU."""
        low = self.flat.bfloat16() if self.on_gpu else self.flat.clone()
        return {name: self._view(low, name).detach() for name in self.parts}

    def _view(self, flat: Tensor, name: str) -> Tensor:
        first, sizes = self.parts[name]
        return flat[first : first + sizes.numel()].view(sizes)

    def _clip(self, gradients: Sequence[Tensor], names: Sequence[str]) -> None:
        """Scale each member's gradient to a norm of at most ``CLIP``."""
        total = torch.zeros(len(self.members), device=self.device)
        ranges = [self._members_of(name) for name in names]
        for one, (first, end) in zip(gradients, ranges, strict=True):
            total[first:end] += torch.linalg.vector_norm(one.flatten(1), dim=1).square()
        share = (CLIP / (total.sqrt() + 1e-6)).clamp(max=1.0)
        for one, (first, end) in zip(gradients, ranges, strict=True):
            one.mul_(share[first:end].view(-1, 1, 1))

    def _members_of(self, name: str) -> tuple[int, int]:
        words = name.split(".")
        if len(words) < 3:
            return 0, len(self.members)
        group = self.model.groups[int(words[2])]
        return group.first, group.end

    def _optimiser_lists(self) -> dict[float, list[list[Tensor]]]:
        """For each rate the parameters, gradients and moments of its members, one by one."""
        lists = {rate: [[], [], [], []] for rate in self.rates}
        flats = (self.flat, self.gradient, self.mean, self.square)
        for name in self.parts:
            first, end = self._members_of(name)
            views = [self._view(flat, name) for flat in flats]
            for row, member in enumerate(self.members[first:end]):
                for kept, view in zip(lists[member.rate], views, strict=True):
                    kept.append(view[row])
        return lists

    def _adamw(self) -> None:
        self.count.add_(1)
        for rate, (weights, gradients, means, squares) in self._lists.items():
            torch._fused_adamw_(
                weights,
                gradients,
                means,
                squares,
                [],
                [self.count] * len(weights),
                lr=self.rates[rate],
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=WEIGHT_DECAY,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    # ── validation, state ───────────────────────────────────────────────────────────────────

    @torch.no_grad()
    def validate(self) -> tuple[list[float], list[float]]:
        """Loss and accuracy of every member on the validation set."""
        weights, size = self._working(), self.loaded.task.sequences
        compiled, self.model.block = self.model.block, block
        total = len(self.validation.ids)
        loss, right = torch.zeros(2, len(self.members), device=self.device)
        for first in range(0, total, size):
            part = self._part(first, min(first + size, total))
            logits = self.model(weights, part.ids, part.asked)
            share = len(part.ids[0]) / total
            loss += share * losses_of(logits, part.answers)
            right += share * (logits.argmax(-1) == part.answers).float().mean(1)
        self.model.block = compiled
        return loss.tolist(), right.tolist()

    def _part(self, first: int, end: int) -> Batch:
        """Some validation sequences, for every member."""
        ids, asked, answers = self.validation
        per = len(answers) // len(ids)
        members = len(self.members)
        if asked is not None:
            asked = asked[first * per : end * per] - first * ids.shape[1]
            asked = asked.expand(members, -1)
        return Batch(
            ids[first:end].expand(members, -1, -1),
            asked,
            answers[first * per : end * per].expand(members, -1),
        )

    @property
    def on_gpu(self) -> bool:
        """Whether the members are on a CUDA device."""
        return self.device.startswith("cuda")

    def tensors(self) -> dict[str, Tensor]:
        """All that changes while training."""
        return {
            "flat": self.flat,
            "mean": self.mean,
            "square": self.square,
            "count": self.count,
            "train_loss": self.train_loss,
        }

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of the state, on the same device."""
        return {name: tensor.clone() for name, tensor in self.tensors().items()}

    def restore(self, kept: Mapping[str, Tensor]) -> None:
        """Take the state of a snapshot, in place."""
        for name, tensor in self.tensors().items():
            tensor.copy_(kept[name])


def _laid_out(drawn: Parameters, device: str) -> tuple[Tensor, dict[str, tuple[int, torch.Size]]]:
    """All parameters in one vector, and where each begins (at a multiple of 64)."""
    parts, first = {}, 0
    for name, value in drawn.items():
        parts[name] = (first, value.shape)
        first += -(-value.numel() // 64) * 64
    flat = torch.zeros(first, device=device)
    for name, value in drawn.items():
        start, sizes = parts[name]
        flat[start : start + sizes.numel()] = value.flatten().to(device)
    return flat, parts


# ── the whole run ───────────────────────────────────────────────────────────────────────────


def curve_steps(lengths: Sequence[int]) -> list[int]:
    """Where the trunk is validated: three times an octave up to its end."""
    end, found = decay_start(max(lengths)), set()
    power = 0
    while (step := round(50 * 2 ** (power / 2))) < end:
        found.add(step)
        power += 1
    return sorted({*found, end})


@dataclass(frozen=True)
class Ended:
    """A length of training that is over: where each member stands."""

    length: int
    losses: list[float]
    accuracies: list[float]
    train_losses: list[float]
    curve: list[tuple[int, list[float]]]


def run(
    ensemble: Ensemble,
    lengths: Sequence[int],
    progress: Progress,
    *,
    sink: Callable[[Ended, Progress], None],
    tick: Callable[[Progress], bool],
) -> bool:
    """Train trunk and branches from where ``progress`` stands; False if ``tick`` stops it."""
    looks = set(curve_steps(lengths))
    branches = {decay_start(length): length for length in sorted(lengths)}
    start = time.monotonic() - progress.seconds
    while True:
        progress.seconds = time.monotonic() - start
        if progress.step in looks and progress.step not in [at for at, _ in progress.curve]:
            progress.curve.append((progress.step, ensemble.validate()[0]))
        length = branches.get(progress.step)
        if length is not None and length not in progress.done:
            ended = _branch(ensemble, length, progress)
            progress.seconds = time.monotonic() - start
            sink(ended, progress)
            progress.done.append(length)
        if len(progress.done) == len(branches):
            return True
        if not tick(progress):
            return False
        ensemble.advance(progress.step, min(1.0, (progress.step + 1) / WARM_UP))
        progress.step += 1
        progress.updates += 1


def _branch(ensemble: Ensemble, length: int, progress: Progress) -> Ended:
    """Let the rate fall to zero, look, and put the trunk back."""
    kept = ensemble.snapshot()
    first = decay_start(length)
    for step in range(first, length):
        rise = min(1.0, (step + 1) / WARM_UP)
        ensemble.advance(step, rise * (length - step) / (length - first))
    progress.updates += length - first
    losses, accuracies = ensemble.validate()
    train_losses = ensemble.train_loss.tolist()
    ensemble.restore(kept)
    return Ended(length, losses, accuracies, train_losses, list(progress.curve))
