"""Rows of a scan in the result store: a scan that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.errors import BadInputError
from headwise.probing.rows import HeadRow
from headwise.runs import Answer, Row, Spec, Store
from headwise.runs.attempt import stamp


class ScannedHead(Spec, frozen=True):
    """One head of one model on one batch; model and batch are named by their contents."""

    kind: Literal["scanned_head"] = "scanned_head"
    revision: Literal[1] = 1
    model: str
    inputs: str
    layer: str
    head: int
    longest_dense: int

    def ask(self) -> Row:
        """Refuse: a stored head is measured by ``scan`` alone, which has the model."""
        raise BadInputError(
            "expected a scan, got the name of one of its heads", hint="call headwise.scan again"
        )


class StoredRows:
    """The rows of one scan that are stored already, and the place for new ones."""

    def __init__(self, store: Store, model: nn.Module, batch: Any, *, longest_dense: int) -> None:
        self._store = store
        self._model, self._inputs = content_of(model.state_dict()), content_of(batch)
        self._longest_dense = longest_dense

    def known(self, layer: str, heads: list[int]) -> dict[int, HeadRow]:
        """Return the rows of a layer that are stored, by head."""
        found = self._store.records_of(self._spec(layer, head) for head in heads)
        rows = [HeadRow(**row) for record in found.values() for row in record.rows]
        return {row.head: row for row in rows}

    def keep(self, row: HeadRow, seconds: float) -> None:
        """Store one row."""
        spec = self._spec(row.layer, row.head)
        self._store.put(spec, Answer(spec.key, (asdict(row),), stamp(spec, "cpu", seconds)))

    def _spec(self, layer: str, head: int) -> ScannedHead:
        return ScannedHead(
            model=self._model,
            inputs=self._inputs,
            layer=layer,
            head=head,
            longest_dense=self._longest_dense,
        )


def content_of(value: Any) -> str:
    """Return a hash of tensors, however they are nested: names, shapes and numbers enter."""
    digest = hashlib.blake2b(digest_size=12)
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for name in value:
            digest.update(str(name).encode())
            _feed(digest, value[name])
    elif isinstance(value, tuple | list):
        for each in value:
            _feed(digest, each)
    elif isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        digest.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy())
    else:
        digest.update(repr(value).encode())
