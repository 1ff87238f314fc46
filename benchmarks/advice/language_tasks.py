"""The tasks over ids: next token, masked token, class of a token, and recall.

Held out, named before anything was trained: source code at length 512 (next-token), sorting
(recall). The vision task held out is SVHN (``benchmarks.advice.tasks``). No rule may be chosen
or tuned on them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from benchmarks.advice.corpora import CLASSES, VOCABULARY, read_corpus
from benchmarks.advice.language_model import Shape
from torch import Tensor

Kind = Literal["next-token", "masked-token", "token-classes", "recall"]

#: Tokens of one step, and tokens on which losses are validated.
STEP_TOKENS = 8192
VALIDATION_TOKENS = 131_072

#: The share of tokens that a masked model must guess.
MASKED = 0.15

#: Ids of the recall tasks: 0 fills, 1 separates, half of the rest are keys, half are values.
#: So many of each, and fewer where recall is to be learned within a few thousand steps.
SYMBOLS, FEW_SYMBOLS = 256, 64
FILL, SEPARATE, FIRST = 0, 1, 2


class Batch(NamedTuple):
    """Sequences (b, n), the positions to answer (counted through the batch) and the answers.

    Every position is asked if ``asked`` is None.
    """

    ids: Tensor
    asked: Tensor | None
    answers: Tensor


Draw = Callable[[int, torch.Generator], Batch]


@dataclass(frozen=True)
class Task:
    """One task: what is learned, from what, by which model."""

    name: str
    kind: Kind
    held_out: bool
    shape: Shape
    source: str

    @property
    def sequences(self) -> int:
        """Sequences of one step."""
        return max(1, STEP_TOKENS // self.shape.length)

    def load(self, folder: Path, device: str) -> Loaded:
        """Read the data; recall tasks make theirs."""
        if self.kind == "recall":
            symbols = (self.shape.vocabulary - FIRST) // 2
            return Loaded(self, *_RECALL[self.source](self.shape.length, symbols), device)
        stored = read_corpus(folder, self.source)
        arrays = {name: torch.from_numpy(a.astype("int64")) for name, a in stored.items()}
        parts = {name: array.to(device) for name, array in arrays.items()}
        classes = self.kind == "token-classes"
        train, test = (
            _windows(self, parts[part], parts[f"{part}_classes"] if classes else None)
            for part in ("train", "test")
        )
        return Loaded(self, train, test, device)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A task with its data on a device: batches by seed and step, and one validation set."""

    task: Task
    train: Draw
    test: Draw | None
    device: str

    def batch(self, seed: int, step: int) -> Batch:
        """The batch of a step: the same for every geometry and every call."""
        return self.train(self.task.sequences, self._generator(f"{seed} train {step}"))

    def validation(self) -> Batch:
        """The sequences on which all models are compared."""
        count = VALIDATION_TOKENS // self.task.shape.length
        return (self.test or self.train)(count, self._generator("validation"))

    def _generator(self, name: str) -> torch.Generator:
        device = torch.Generator(device=self.device)
        return device.manual_seed(zlib.crc32(f"{self.task.name} {name}".encode()))


def _windows(task: Task, ids: Tensor, classes: Tensor | None) -> Draw:
    """Random windows of a long text."""
    length = task.shape.length
    window = torch.arange(length + 1, device=ids.device)

    def draw(count: int, generator: torch.Generator) -> Batch:
        first = torch.randint(len(ids) - length, (count, 1), generator=generator, device=ids.device)
        found = ids[first + window]
        if task.kind == "next-token":
            return Batch(found[:, :-1], None, found[:, 1:].flatten())
        if classes is not None:
            return Batch(found[:, :-1], None, classes[(first + window[:-1]).flatten()])
        return _masked(found[:, :-1], generator)

    return draw


def _masked(ids: Tensor, generator: torch.Generator) -> Batch:
    """Hide the same number of tokens in each sequence; the mask's id is the vocabulary's size."""
    count, length = ids.shape
    scores = torch.rand((count, length), generator=generator, device=ids.device)
    places = scores.argsort(dim=1)[:, : max(1, round(MASKED * length))].sort(dim=1).values
    asked = _through(places, length)
    return Batch(ids.scatter(1, places, VOCABULARY), asked, ids.flatten()[asked])


def _through(places: Tensor, length: int) -> Tensor:
    """Positions in each sequence (b, k) as positions counted through all sequences (b·k)."""
    first = torch.arange(len(places), device=places.device).unsqueeze(1) * length
    return (places + first).flatten()


# ── recall ──────────────────────────────────────────────────────────────────────────────────


def associative_recall(length: int, symbols: int = SYMBOLS, fewest: int | None = None) -> Draw:
    """Pairs of key and value, then keys again in another order: answer each with its value.

    A quarter of the sequence is keys, a quarter values; the asked half alternates a key and the
    fill symbol, and the answer is due at the key. All pairs are distinct, unless ``fewest`` is
    given: then each sequence repeats a random number of pairs, at least so many.
    """
    pairs = length // 4

    def draw(count: int, generator: torch.Generator) -> Batch:
        device = generator.device
        keys = _distinct(count, pairs, symbols, generator)
        drawn = torch.randint(symbols, (count, pairs), generator=generator, device=device)
        values = FIRST + symbols + drawn
        if fewest is not None:
            sizes = torch.randint(fewest, pairs + 1, (count, 1), generator=generator, device=device)
            places = torch.arange(pairs, device=device) % sizes
            keys, values = keys.gather(1, places), values.gather(1, places)
        order = torch.rand((count, pairs), generator=generator, device=device).argsort(dim=1)
        told = torch.stack([keys, values], dim=2).flatten(1)
        blank = torch.full_like(keys, FILL)
        questions = torch.stack([keys.gather(1, order), blank], dim=2).flatten(1)
        places = 2 * pairs + 2 * torch.arange(pairs, device=device).expand(count, -1)
        ids = torch.cat([told, questions], dim=1)
        return Batch(ids, _through(places, length), values.gather(1, order).flatten())

    return draw


def copying(length: int, symbols: int = SYMBOLS) -> Draw:
    """A random sequence, a separator, the sequence again: foretell each symbol of the second."""

    def draw(count: int, generator: torch.Generator) -> Batch:
        size = (count, length // 2)
        return _again(_symbols(size, symbols, generator), lambda given: given)

    return draw


def sorting(length: int, symbols: int = SYMBOLS) -> Draw:
    """A random sequence, a separator, the sequence sorted: foretell each symbol of the second."""

    def draw(count: int, generator: torch.Generator) -> Batch:
        size = (count, length // 2)
        return _again(_symbols(size, symbols, generator), lambda given: given.sort(dim=1).values)

    return draw


def _symbols(size: tuple[int, int], symbols: int, generator: torch.Generator) -> Tensor:
    drawn = torch.randint(2 * symbols, size, generator=generator, device=generator.device)
    return FIRST + drawn


def _again(given: Tensor, change: Callable[[Tensor], Tensor]) -> Batch:
    count, half = given.shape
    changed = change(given)
    mark = torch.full_like(given[:, :1], SEPARATE)
    ids = torch.cat([given, mark, changed[:, :-1]], dim=1)
    places = half + torch.arange(half, device=given.device).expand(count, -1)
    return Batch(ids, _through(places, 2 * half), changed.flatten())


def _distinct(count: int, pairs: int, symbols: int, generator: torch.Generator) -> Tensor:
    scores = torch.rand((count, symbols), generator=generator, device=generator.device)
    return FIRST + scores.argsort(dim=1)[:, :pairs]


def _mixed_recall(length: int, symbols: int) -> tuple[Draw, Draw]:
    """Train on any number of distinct pairs, validate on as many as fit."""
    return associative_recall(length, symbols, fewest=1), associative_recall(length, symbols)


def _alike(make: Callable[[int, int], Draw]) -> Callable[[int, int], tuple[Draw, None]]:
    """Validate on sequences like those of training."""
    return lambda length, symbols: (make(length, symbols), None)


#: What draws training sequences, and validation sequences where these differ.
_RECALL: dict[str, Callable[[int, int], tuple[Draw, Draw | None]]] = {
    "associative": _alike(associative_recall),
    "associative-mixed": _mixed_recall,
    "copying": _alike(copying),
    "sorting": _alike(sorting),
}


# ── the list ────────────────────────────────────────────────────────────────────────────────


def _language(source: str, kind: Kind, width: int, length: int, held_out: bool = False) -> Task:
    outputs = len(CLASSES) if kind == "token-classes" else VOCABULARY
    vocabulary = VOCABULARY + (kind == "masked-token")
    shape = Shape(width, 6, length, vocabulary, outputs, causal=kind == "next-token")
    return Task(f"{source}-{kind}-w{width}-n{length}", kind, held_out, shape, source)


def _recall(source: str, width: int, length: int, held_out: bool = False) -> Task:
    ids = FIRST + 2 * (FEW_SYMBOLS if source == "associative-mixed" else SYMBOLS)
    shape = Shape(width, 2, length, ids, ids, causal=True)
    return Task(f"{source}-w{width}-n{length}", "recall", held_out, shape, source)


def _all() -> dict[str, Task]:
    found = [
        *(
            _language("prose", "next-token", width, length)
            for width in (256, 128)
            for length in (512, 128)
        ),
        *(
            _language("code", "next-token", width, length, held_out=length == 512)
            for width in (256, 128)
            for length in (512, 128)
        ),
        *(
            _language("prose", "masked-token", width, length)
            for width in (256, 128)
            for length in (512, 128)
        ),
        _language("code", "token-classes", 128, 128),
        *(_recall("associative", 128, length) for length in (128, 256)),
        _recall("associative-mixed", 128, 64),
        _recall("copying", 128, 256),
        _recall("sorting", 128, 128, held_out=True),
    ]
    return {task.name: task for task in found}


#: Every task by name.
TASKS = _all()
