"""Tokens out of what a loader gives: tensors, tuples or mappings, joined to one tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from headwise.errors import BadInputError

#: Sequences taken from a loader: more would not change the answer.
MOST_SEQUENCES = 256

#: Where the inputs of a batch that is a mapping stand; the first that is there is taken.
IMAGES = "pixel_values"
KEYS = ("input_ids", IMAGES, "inputs", "x")


def joined_batches(given: Any, source: str) -> Tensor:
    """One array as it is, or the first sequences of batches: tensors, tuples or mappings.

    >>> loader = [{"input_ids": [[1, 2, 3]], "labels": [0]}, {"input_ids": [[4, 5, 6]]}]
    >>> joined_batches(loader, "package:function").tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    if not isinstance(given, Iterable):
        raise BadInputError(
            f"{source} gave a {type(given).__name__}", hint="give or yield batches of tokens"
        )
    # A table of a dataset has a shape too, and is read row by row.
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return torch.as_tensor(given)
    batches: list[Tensor] = []
    for batch in [given] if isinstance(given, Mapping) else given:
        batches.append(_inputs(batch, source))
        if sum(map(len, batches)) >= MOST_SEQUENCES:
            break
    if not batches:
        raise BadInputError(f"{source} yielded nothing", hint="yield batches of tokens")
    _refuse_unequal(batches, source)
    return torch.cat(batches)[:MOST_SEQUENCES]


def _inputs(batch: Any, source: str) -> Tensor:
    """The inputs of one batch; a single sequence or image is a batch of one."""
    if isinstance(batch, tuple | list) and not batch:
        raise BadInputError(f"{source} gave an empty batch", hint="yield batches of tokens")
    if isinstance(batch, tuple | list) and not isinstance(batch[0], int | float):
        return _inputs(batch[0], source)
    if not isinstance(batch, Mapping):
        values = _as_tensor(batch, source)
        return values.unsqueeze(0) if values.ndim == _one_sequence(values) else values
    key = next((key for key in KEYS if key in batch), None)
    if key is None:
        seen = ", ".join(map(str, batch)) or "no keys"
        raise BadInputError(
            f"{source} gave a batch with {seen}",
            hint=f"name its inputs {', '.join(KEYS[:-1])} or {KEYS[-1]}",
        )
    values = _as_tensor(batch[key], source)
    alone = 3 if key == IMAGES else _one_sequence(values)
    return values.unsqueeze(0) if values.ndim == alone else values


def _one_sequence(values: Tensor) -> int:
    """How many dimensions a single sequence has: vectors two, ids one."""
    return 2 if values.is_floating_point() else 1


def _as_tensor(values: Any, source: str) -> Tensor:
    """An array of at least one dimension; rows of unequal length make none."""
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        _refuse_lengths(_row_lengths(values), source)
        raise BadInputError(
            f"{source} gave a batch of type {type(values).__name__} that is no array of numbers",
            hint="yield tensors or arrays: vectors (batch, sequence, width), or ids",
        ) from None
    if found.ndim == 0:
        raise BadInputError(
            f"{source} gave a batch that is one number", hint="yield batches of tokens"
        )
    return found


def _row_lengths(values: Any) -> set[int]:
    rows = values if isinstance(values, list | tuple) else ()
    return {len(row) for row in rows if hasattr(row, "__len__")}


def _refuse_unequal(batches: list[Tensor], source: str) -> None:
    """Batches that differ in length, or in more than that, cannot be joined."""
    shapes = {tuple(batch.shape[1:]) for batch in batches}
    # Beyond their length, vectors must agree in width; images have another shape altogether.
    if len({(len(shape), shape[1:]) for shape in shapes}) == 1 and batches[0].ndim < 4:
        _refuse_lengths({shape[0] for shape in shapes}, source)
    if len(shapes) > 1:
        raise BadInputError(
            f"{source} gave batches of parts {' and '.join(map(str, sorted(shapes)[:2]))}",
            hint="yield batches that differ in their number of sequences alone",
        )


def _refuse_lengths(lengths: set[int], source: str) -> None:
    if len(lengths) > 1:
        raise BadInputError(
            f"{source} gave sequences of unequal length, {min(lengths)} to {max(lengths)} tokens",
            hint="cut or pad them to one length (padding counts as tokens, so better cut)",
        )
