"""Join what a loader, a dataset or a function gives into one tensor of inputs, and its labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from headwise.errors import BadInputError

#: Names of the inputs in a batch that is a mapping; the first one present is taken.
IMAGES = "pixel_values"
KEYS = ("input_ids", IMAGES, "inputs", "x")

#: Names of the labels in a batch that is a mapping.
LABELS = ("labels", "label", "targets", "y")

#: A loader without end is read up to this many bytes.
MOST_BYTES = 2**32

#: The inputs of a batch, and the class of each if they are known.
Labelled = tuple[Tensor, Tensor | None]


def joined_batches(given: Any, source: str, most: int) -> tuple[Tensor, Tensor | None]:
    """Join the first ``most`` samples of batches: tensors, pairs with labels, or mappings.

    A dataset with a length is read at evenly spaced indices, one sample each. Labels are None
    unless every sample has a number: whole numbers are classes, others are to be predicted.

    >>> loader = [{"input_ids": [[1, 2, 3]], "labels": [0]}, ([[4, 5, 6]], [1])]
    >>> [found.tolist() for found in joined_batches(loader, "loader", most=256)]
    [[[1, 2, 3], [4, 5, 6]], [0, 1]]
    """
    found: list[Labelled] = []
    samples, size = 0, 0
    for values, labels in _batches(given, source, most):
        found.append((values, labels))
        samples, size = samples + len(values), size + values.nbytes
        if samples >= most or size >= MOST_BYTES:
            break
    if not found:
        raise BadInputError(f"{source} gave no batches", hint="give at least one batch of tokens")
    batches = [values for values, _ in found]
    _refuse_unequal(batches, source)
    labels = [labels for _, labels in found if labels is not None]
    joined = torch.cat(labels)[:most] if len(labels) == len(found) else None
    return torch.cat(batches)[:most], joined


def _batches(given: Any, source: str, most: int) -> Iterator[Labelled]:
    if isinstance(given, Mapping):
        yield _inputs(given, source)
    # A torch.utils.data.Dataset is indexed by number and has no iterator.
    elif hasattr(given, "__getitem__") and not hasattr(given, "__iter__"):
        yield from _samples(given, source, most)
    elif isinstance(given, Iterable):
        for batch in given:
            yield _inputs(batch, source)
    else:
        raise BadInputError(
            f"{source} holds no tokens",
            hint="pass an array, a path, a DataLoader, a Dataset, text or PACKAGE:FUNCTION",
        )


def _samples(dataset: Any, source: str, most: int) -> Iterator[Labelled]:
    """Single samples of a dataset at evenly spaced indices.

    Without a length, samples are read from the start: such a dataset may have no end.
    """
    count = len(dataset) if hasattr(dataset, "__len__") else most
    wanted = min(count, most)
    for index in range(wanted):
        try:
            sample = dataset[index * count // wanted]
        except IndexError:
            return
        yield _values(sample, source)[0].unsqueeze(0), _labels(sample, 1)


def _inputs(batch: Any, source: str) -> Labelled:
    """The inputs of one batch and its labels; a single sequence or image is a batch of one."""
    values, images = _values(batch, source)
    alone = 3 if images else 2 if values.is_floating_point() else 1
    values = values.unsqueeze(0) if values.ndim == alone else values
    return values, _labels(batch, len(values))


def _labels(batch: Any, count: int) -> Tensor | None:
    """The label of each sample, where the batch has one number for each."""
    if isinstance(batch, Mapping):
        given = next((batch[key] for key in LABELS if key in batch), None)
    elif isinstance(batch, tuple | list) and not isinstance(batch[0], int | float):
        given = batch[1] if len(batch) == 2 else None
    else:
        given = None
    try:
        found = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        return None
    found = found.unsqueeze(0) if found.ndim == 0 else found
    if found.shape != (count,) or found.is_complex():
        return None
    return found.double() if found.is_floating_point() else found.long()


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
