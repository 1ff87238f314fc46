"""Rows of a scan in the result store: a scan that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.errors import BadInputError
from headwise.probing.rows import HeadRow
from headwise.runs import Answer, Row, Spec, Store
from headwise.runs.attempt import stamp


def _refuse(self: Spec) -> Row:
    """Refuse: what a scan stores is measured by ``scan`` alone, which has the model."""
    raise BadInputError(
        "expected a scan, got the name of one of its parts", hint="call headwise.scan again"
    )


class _OfScan(Spec, frozen=True):
    """A part of one scan: model and batch are named by their contents."""

    model: str
    inputs: str


class ScannedModel(_OfScan, frozen=True):
    """What a person calls the model of a scan, and its size."""

    kind: Literal["scanned_model"] = "scanned_model"
    revision: Literal[1] = 1
    ask = _refuse


class ScannedHead(_OfScan, frozen=True):
    """The numbers of one head of one model on one batch."""

    kind: Literal["scanned_head"] = "scanned_head"
    revision: Literal[1] = 1
    layer: str
    head: int
    longest_dense: int
    ask = _refuse


class PicturedHead(_OfScan, frozen=True):
    """The spectrum and the attention pattern of one head on the first sequence."""

    kind: Literal["pictured_head"] = "pictured_head"
    revision: Literal[1] = 1
    layer: str
    head: int
    ask = _refuse


class StoredRows:
    """The rows of one scan that are stored already, and the place for new ones."""

    def __init__(self, store: Store, model: nn.Module, batch: Any, *, longest_dense: int) -> None:
        self._store = store
        content = {"weights": model.state_dict(), "settings": settings_of(model)}
        named = {"model": content_of(content), "inputs": content_of(batch)}
        self._scan: dict[str, Any] = named
        self._longest_dense = longest_dense
        self._keep(ScannedModel(**self._scan), {"name": _name(model), "parameters": _size(model)})

    def known(self, layer: str, heads: list[int]) -> dict[int, HeadRow]:
        """Return the rows of a layer that are stored, by head."""
        found = self._store.records_of(self._spec(layer, head) for head in heads)
        rows = [HeadRow(**row) for record in found.values() for row in record.rows]
        return {row.head: row for row in rows}

    def keep(self, row: HeadRow, picture: dict[str, Any], seconds: float) -> None:
        """Store one row, after its picture: where there is a row, there is a picture."""
        if picture:
            self._keep(PicturedHead(**self._scan, layer=row.layer, head=row.head), picture)
        self._keep(self._spec(row.layer, row.head), asdict(row), seconds)

    def _keep(self, spec: Spec, row: Row, seconds: float = 0.0) -> None:
        self._store.put(spec, Answer(spec.key, (row,), stamp(spec, "cpu", seconds)))

    def _spec(self, layer: str, head: int) -> ScannedHead:
        return ScannedHead(**self._scan, layer=layer, head=head, longest_dense=self._longest_dense)


def _name(model: nn.Module) -> str:
    """Return what a person calls a model: the end of the path it came from, or its class."""
    path = getattr(getattr(model, "config", None), "_name_or_path", None)
    parts = Path(path).parts[-2:] if isinstance(path, str) else ()
    return "/".join(parts) or type(model).__name__


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def settings_of(model: nn.Module) -> list[Any]:
    """Return what a model computes with beside its weights: its config and plain attributes.

    Models with the same weights may differ in their heads, windows or positions.
    """
    config: Any = getattr(model, "config", None)
    fields = config.to_dict() if hasattr(config, "to_dict") else {}
    kept = {name: fields[name] for name in sorted(fields) if not _is_about_files(name)}
    plain = [
        (name, key, value)
        for name, module in model.named_modules()
        for key, value in sorted(vars(module).items())
        if not key.startswith("_") and key != "training" and isinstance(value, _PLAIN)
    ]
    return [kept, plain]


#: Attributes of modules that enter the name of a scan.
_PLAIN = (bool, int, float, str, type(None))


def _is_about_files(name: str) -> bool:
    """Whether a field of a config says where the model came from, not what it computes."""
    return name.startswith("_") or name == "transformers_version"


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
