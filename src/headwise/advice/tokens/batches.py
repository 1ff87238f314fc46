"""Join what a loader, a dataset or a function gives into one tensor of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from headwise.errors import BadInputError

#: Sequences taken from a loader or dataset: more would not change the answer.
MOST_SEQUENCES = 256

#: Names of the inputs in a batch that is a mapping; the first one present is taken.
IMAGES = "pixel_values"
KEYS = ("input_ids", IMAGES, "inputs", "x")


def joined_batches(given: Any, source: str) -> Tensor:
    """One array as it is, or the first sequences of batches: tensors, tuples or mappings.

    A dataset with a length is read at evenly spaced indices, one sample each.

    >>> loader = [{"input_ids": [[1, 2, 3]], "labels": [0]}, {"input_ids": [[4, 5, 6]]}]
    >>> joined_batches(loader, "loader").tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    # A table of a dataset has a shape too, and is read row by row.
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return torch.as_tensor(given)
    batches: list[Tensor] = []
    for batch in _batches(given, source):
        batches.append(batch)
        if sum(map(len, batches)) >= MOST_SEQUENCES:
            break
    if not batches:
        raise BadInputError(f"{source} gave no batches", hint="give at least one batch of tokens")
    _refuse_unequal(batches, source)
    return torch.cat(batches)[:MOST_SEQUENCES]


def is_map_dataset(given: Any) -> bool:
    """Whether it is indexed by number and has no iterator, as ``torch.utils.data.Dataset``."""
    return hasattr(given, "__getitem__") and not hasattr(given, "__iter__")


def _batches(given: Any, source: str) -> Iterator[Tensor]:
    if isinstance(given, Mapping):
        yield _inputs(given, source)
    elif is_map_dataset(given):
        yield from _samples(given, source)
    elif isinstance(given, Iterable):
        for batch in given:
            yield _inputs(batch, source)
    else:
        raise BadInputError(
            f"{source}: expected batches of tokens, got a {type(given).__name__}",
            hint="give a tensor, or batches of tokens",
        )


def _samples(dataset: Any, source: str) -> Iterator[Tensor]:
    """Single samples of a dataset at evenly spaced indices.

    Without a length, samples are read from the start: such a dataset may have no end.
    """
    count = len(dataset) if hasattr(dataset, "__len__") else MOST_SEQUENCES
    wanted = min(count, MOST_SEQUENCES)
    for index in range(wanted):
        try:
            sample = dataset[index * count // wanted]
        except IndexError:
            return
        yield _values(sample, source)[0].unsqueeze(0)


def _inputs(batch: Any, source: str) -> Tensor:
    """The inputs of one batch; a single sequence or image is a batch of one."""
    values, images = _values(batch, source)
    alone = 3 if images else 2 if values.is_floating_point() else 1
    return values.unsqueeze(0) if values.ndim == alone else values


def _values(batch: Any, source: str) -> tuple[Tensor, bool]:
    """The input of a batch or sample as a tensor, and whether its key says it is images."""
    if isinstance(batch, tuple | list) and not batch:
        raise BadInputError(f"{source} gave an empty batch", hint="give batches of tokens")
    if isinstance(batch, tuple | list) and not isinstance(batch[0], int | float):
        return _values(batch[0], source)
    if not isinstance(batch, Mapping):
        return _as_tensor(batch, source), False
    key = next((key for key in KEYS if key in batch), None)
    if key is None:
        seen = ", ".join(map(str, batch)) or "no keys"
        raise BadInputError(
            f"{source}: expected a batch with {', '.join(KEYS[:-1])} or {KEYS[-1]}, got {seen}",
            hint="rename the inputs of the batch",
        )
    return _as_tensor(batch[key], source), key == IMAGES


def _as_tensor(values: Any, source: str) -> Tensor:
    """An array of at least one dimension; rows of unequal length are refused."""
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        _refuse_lengths(_row_lengths(values), source)
        raise BadInputError(
            f"{source}: expected arrays of numbers, got a batch of type {type(values).__name__}",
            hint="give tensors or arrays: vectors (batch, sequence, width), or ids",
        ) from None
    if found.ndim == 0:
        raise BadInputError(
            f"{source}: expected a batch of tokens, got one number", hint="give arrays"
        )
    return found


def _row_lengths(values: Any) -> set[int]:
    rows = values if isinstance(values, list | tuple) else ()
    return {len(row) for row in rows if hasattr(row, "__len__")}


def _refuse_unequal(batches: list[Tensor], source: str) -> None:
    """Refuse batches that cannot be joined."""
    shapes = {tuple(batch.shape[1:]) for batch in batches}
    # Vectors must agree in everything but their number per sequence; images in every dimension.
    if len({(len(shape), shape[1:]) for shape in shapes}) == 1 and batches[0].ndim < 4:
        _refuse_lengths({shape[0] for shape in shapes}, source)
    if len(shapes) > 1:
        raise BadInputError(
            f"{source}: expected samples of one shape, got "
            f"{' and '.join(map(str, sorted(shapes)[:2]))}",
            hint="make all batches alike except for the number of sequences",
        )


def _refuse_lengths(lengths: set[int], source: str) -> None:
    if len(lengths) > 1:
        raise BadInputError(
            f"{source}: expected sequences of one length, got {min(lengths)} to {max(lengths)} "
            "tokens",
            hint="cut them to one length; padding would count as tokens",
        )
