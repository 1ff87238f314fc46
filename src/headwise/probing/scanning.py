"""Scan a model: the ranks of every attention head on a batch of inputs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headwise.attention.view import AttentionView
from headwise.memory import refuse_if_too_large
from headwise.probing.capturing import Read, capture
from headwise.probing.head_count import head_count
from headwise.probing.long_heads import long_numbers
from headwise.probing.notes import is_cut, latent_size, notes_on
from headwise.probing.numbers import HeadNumbers, form_ranks, head_numbers, law_rank
from headwise.probing.refusals import (
    one_line_if_unfit,
    real_parts,
    refuse_absent,
    refuse_not_finite,
    refuse_unmasked_padding,
    refuse_wrong_question,
)
from headwise.probing.result import Scan
from headwise.probing.rows import HeadRow
from headwise.progress import SILENT, Progress, tracked
from headwise.threads import side_by_side

if TYPE_CHECKING:
    from headwise.probing.stored import StoredRows
    from headwise.runs import Store

#: What a model is called with.
Batch = Tensor | tuple[Any, ...] | Mapping[str, Any]

#: Matrices of at most so many rows are formed; longer sequences are measured without them.
LONGEST_DENSE = 2048

#: How many float64 matrices measuring a head takes at once.
COPIES = 6


@torch.no_grad()
def scan_module(
    model: nn.Module,
    batch: Batch | None,
    *,
    against: nn.Module | None = None,
    store: Store | str | Path | None = None,
    **choice: Any,
) -> Scan:
    """Measure a model in memory; ``headwise.scan`` describes the parameters."""
    refuse_wrong_question(model, batch, choice.get("layers"), choice.get("heads"))
    assert batch is not None  # refuse_wrong_question saw to it
    asked = _Question(batch, **choice)
    refuse_unmasked_padding(model, batch)
    with _opened(store) as place:
        asked = replace(asked, store=place)
        found = _scanned(model, asked)
        return found if against is None else replace(found, initial=_scanned(against, asked))


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of a model; ``scan`` describes the fields."""

    batch: Batch
    layers: Collection[int | str] | None = None
    heads: Collection[int] | None = None
    longest_dense: int = LONGEST_DENSE
    progress: Progress = SILENT
    store: Store | None = None


@contextmanager
def _opened(store: Any) -> Iterator[Any]:
    if store is None or hasattr(store, "records_of"):
        yield store
        return
    from headwise.runs import Store

    with Store.open(store) as opened:
        yield opened


def _scanned(model: nn.Module, asked: _Question) -> Scan:
    rows = None
    if asked.store is not None:
        from headwise.probing.stored import StoredRows

        rows = StoredRows(asked.store, model, asked.batch, longest_dense=asked.longest_dense)
    pass_ = _Pass(asked, rows)
    attends = "fused" if _length(asked.batch) > asked.longest_dense else "eager"
    total = head_count(model, asked.layers, asked.heads)
    with (
        _evaluating(model),
        tracked(asked.progress, "measuring heads", total),
        one_line_if_unfit(model, lambda: pass_.measuring),
        capture(model, pass_.receive, attends=attends),
    ):
        call(model, asked.batch)
    return pass_.result(model)


def call(model: nn.Module, batch: Batch) -> Any:
    """Call a model with a batch."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*(batch if isinstance(batch, tuple) else (batch,)))


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode, and restore the mode of each module."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _length(batch: Batch) -> int:
    """Return the number of tokens, as far as the batch tells; images have few."""
    given = (
        batch.get("input_ids", batch.get("inputs_embeds"))
        if isinstance(batch, Mapping)
        else (batch[0] if isinstance(batch, tuple) else batch)
    )
    return given.shape[1] if isinstance(given, Tensor) and given.ndim in (2, 3) else 0


@dataclass
class _Pass:
    """Receives the layers of one forward pass, and measures the chosen heads of each."""

    asked: _Question
    stored: StoredRows | None
    rows: list[HeadRow] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    kv_heads: dict[str, int] = field(default_factory=dict)
    most_heads: int = 0
    measuring: bool = False

    def receive(self, name: str, view: Read) -> None:
        """Measure the heads of one layer; the reader need not see the calls of torch in here."""
        self.measuring = True
        with torch._C.DisableTorchFunction():
            self._receive(name, view)
        self.measuring = False

    def _receive(self, name: str, view: Read) -> None:
        place = len(self.seen)
        self.seen.append(name)
        if self.asked.layers is not None and not {place, name} & set(self.asked.layers):
            return
        self.most_heads = max(self.most_heads, view.shape[1])
        chosen = range(view.shape[1]) if self.asked.heads is None else sorted(set(self.asked.heads))
        chosen = [head for head in chosen if head < view.shape[1]]
        refuse_not_finite(name, view)
        self.asked.progress.show(name)
        if isinstance(view, AttentionView) and len(chosen) == view.shape[1]:
            self.kv_heads[name] = view.keys.shape[1]
        known = self.stored.known(name, chosen) if self.stored is not None else {}
        fresh = self._measured(name, view, [head for head in chosen if head not in known])
        for head in chosen:
            self.rows.append(known[head] if head in known else next(fresh))
            self.asked.progress.advance()

    def _measured(self, name: str, view: Read, heads: list[int]) -> Iterator[HeadRow]:
        """Yield the rows of these heads, each stored as soon as it is there."""
        if not heads:
            return
        parts = real_parts(view)
        forms = form_ranks(view) if isinstance(view, AttentionView) else [None] * view.shape[1]
        started = time.perf_counter()

        def numbers(head: int) -> list[HeadNumbers]:
            return [
                self._numbers(part.head(sequence, head))
                for part in parts
                for sequence in range(part.shape[0])
            ]

        for head, found in zip(heads, side_by_side(numbers, heads), strict=True):
            row = _row(name, head, parts[0], found, forms[head])
            if self.stored is not None:
                self.stored.keep(row, found[0].picture, time.perf_counter() - started)
            started = time.perf_counter()
            yield row

    def _numbers(self, view: Read) -> HeadNumbers:
        """Measure one head on one sequence; a softcap or sinks need the matrix at any length."""
        n, m = view.shape[-2:]
        if min(n, m) <= self.asked.longest_dense:
            return head_numbers(view)
        if isinstance(view, AttentionView) and view.softcap is None and view.sinks is None:
            return long_numbers(view)
        refuse_if_too_large(
            f"a head with a softcap, sinks or maps alone has to be formed, and on {n:,} tokens it",
            COPIES * 8 * n * m,
            torch.device("cpu"),
            "pass fewer tokens",
        )
        return head_numbers(view)

    def result(self, model: nn.Module) -> Scan:
        """Return the rows, or refuse layers and heads that are not there."""
        refuse_absent(self.asked.layers, self.seen, self.asked.heads, self.most_heads)
        config = getattr(model, "config", None)
        width = getattr(config, "hidden_size", None)
        return Scan(
            tuple(self.rows),
            notes=tuple(notes_on(self.rows, config)),
            kv_heads={} if latent_size(config) is not None or is_cut(config) else self.kv_heads,
            width=width if isinstance(width, int) else None,
            model=type(model).__name__,
        )


def _row(name: str, head: int, part: Read, found: list[HeadNumbers], form: int | None) -> HeadRow:
    """Take the means of one head over the sequences."""
    read = part if isinstance(part, AttentionView) else None
    tokens = [each.values["tokens"] or 0.0 for each in found]
    head_dim = None if read is None else read.queries.shape[-1]
    mask = "in the maps" if read is None else read.mask.name
    square = read is not None and read.shape[-1] == read.shape[-2]
    laws = [
        law_rank(int(n), head_dim, mask) if square and head_dim is not None else None
        for n in tokens
    ]
    names = [each for each in found[0].values if each != "tokens"]
    return HeadRow(
        layer=name,
        head=head,
        **{each: _mean([one.values[each] for one in found]) for each in names},
        law=_mean(laws),
        form_rank=form,
        tokens=sum(tokens) / len(tokens),
        head_dim=head_dim,
        value_dim=None if read is None or read.values is None else read.values.shape[-1],
        mask=mask,
        dtype=str(part.dtype).removeprefix("torch."),
        sequences=len(found),
        excluded=sum(each.excluded for each in found),
        method=found[0].method,
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
