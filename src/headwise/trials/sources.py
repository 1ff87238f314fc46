"""Make a problem for a trial of whatever data a person has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.arrays import read_array
from headwise.data.sources import Source, read_source
from headwise.data.text import encode_all, encoder_of
from headwise.errors import BadInputError, ParameterError
from headwise.trials.problems import Problem

#: What built-in models can be trained to do.
TASKS = ("classify", "regress", "next-token")

#: The most files of a folder, and samples of a loader or dataset, that are read.
MOST_SAMPLES = 2**16

#: The largest side of a patch, unless given.
LARGEST_PATCH = 4

#: Small images get smaller patches, so that at least this many tokens are left.
FEWEST_PATCHES = 16

#: Tokens of a sequence of text, and how a text without labels is cut, unless given. Both differ
#: from ``advise``, to train faster: scores of 20,000 words at each token take long.
TEXT_LENGTH, TEXT_TOKENIZER = 64, "character"


@dataclass(frozen=True)
class Frame:
    """How to read the data, and the frame of the model; None is the default for the data.

    Attributes:
        task: "classify", "regress" or "next-token"; by default "classify" if there are labels of
            whole numbers, and "regress" if they have fractions.
        depth: Layers of the model.
        patch: Side of an image patch.
        size: Side that images of a folder are scaled to.
        length: Tokens of a sequence of text.
        tokenizer: "character", "word" or the path of a tokenizer.json.
    """

    task: str | None = None
    depth: int = 2
    patch: int | None = None
    size: int | None = None
    length: int | None = None
    tokenizer: str | None = None


def read_problem(inputs: Any, labels: Any, frame: Frame) -> Problem:
    """Make a problem of whatever data a person has."""
    if frame.task not in (None, *TASKS):
        raise ParameterError(
            f"expected task 'classify', 'regress' or 'next-token', got {frame.task!r}",
            hint="pass one of them, or `build` and `batches` for your own model",
        )
    found = read_source(inputs, most=MOST_SAMPLES, size=frame.size)
    _refuse_unused(found, frame)
    if labels is not None and (found.labels is not None or len(found.texts) == 1):
        raise ParameterError(
            f"expected no labels beside {found.name}, got some",
            hint="leave them out: text needs none, and some sources have their own",
        )
    given = found.labels if labels is None else labels
    wanted = None if frame.task == "next-token" else _labels(given, frame.task)
    if found.values is not None:
        return _of_array(found.values, wanted, frame)
    if wanted is None:
        return _of_text("\n".join(found.texts), frame)
    return _of_texts(found.texts, wanted, frame)


def _refuse_unused(found: Source, frame: Frame) -> None:
    """Refuse parameters of texts for other data, and the size of images that have one."""
    unused = {"size"} if found.kind == "digits" else set()
    if found.values is not None:
        unused |= {"tokenizer"}
    if found.values is not None and found.values.dim() > 2:
        unused |= {"length"}
    given = [f"`{name}`" for name in sorted(unused) if getattr(frame, name) is not None]
    if given:
        raise ParameterError(
            f"{found.name} has no use for {' and '.join(given)}", hint="leave that out"
        )


def _of_array(values: Tensor, labels: Tensor | None, frame: Frame) -> Problem:
    if values.dim() == 4:
        return _of_images(values.double(), labels, frame)
    if values.dim() == 3 and not values.is_complex():
        return _of_vectors(values, labels, frame)
    if values.is_floating_point() or values.dim() not in (1, 2):
        kind = str(values.dtype).removeprefix("torch.")
        raise BadInputError(
            "expected images (b, channels, side, side), vectors (b, n, c) or whole-number ids "
            f"(b, n) or (n), got shape {tuple(values.shape)} of {kind}",
            hint="reshape the inputs, or pass `build` and `batches` for your own model",
        )
    _refuse_patch(frame, "token ids")
    ids, vocabulary = values.long(), int(values.max()) + 1 if values.numel() else 0
    if values.numel() and int(values.min()) < 0:
        raise BadInputError(
            f"expected ids from 0 up, got {int(values.min())}", hint="number tokens from 0"
        )
    if labels is None and frame.task != "regress":
        return _next_token(ids, vocabulary, frame)
    return Problem("ids", ids, labels, vocabulary=vocabulary, depth=frame.depth)


def _of_vectors(vectors: Tensor, labels: Tensor | None, frame: Frame) -> Problem:
    _refuse_patch(frame, "vectors")
    if frame.task == "next-token":
        raise ParameterError(
            "expected ids or text for task 'next-token', got vectors",
            hint="pass labels and `task='classify'` or `task='regress'`",
        )
    return Problem("vectors", vectors.float(), labels, depth=frame.depth)


def _refuse_patch(frame: Frame, got: str) -> None:
    if frame.patch is not None:
        raise ParameterError(f"`patch` goes with images, got {got}", hint="leave it out")


def _of_images(images: Tensor, labels: Tensor | None, frame: Frame) -> Problem:
    if frame.task == "next-token":
        raise ParameterError(
            "expected ids or text for task 'next-token', got images", hint="pass `task='classify'`"
        )
    patch = frame.patch or _fitting_patch(images.shape[-1])
    return Problem("images", images, labels, patch=patch, depth=frame.depth)


def _fitting_patch(side: int) -> int:
    """The largest patch up to 4 that tiles the image into enough tokens."""
    fits = [p for p in range(1, LARGEST_PATCH + 1) if side % p == 0]
    return max((p for p in fits if (side // p) ** 2 >= FEWEST_PATCHES), default=1)


def _of_text(text: str, frame: Frame) -> Problem:
    if frame.task in ("classify", "regress"):
        raise ParameterError(
            f"expected labels for task '{frame.task}', got one text",
            hint="pass a list of texts with labels, or `task='next-token'`",
        )
    encode, size = encoder_of(text, frame.tokenizer or TEXT_TOKENIZER)
    return _next_token(encode(text), size, frame)


def _next_token(ids: Tensor, vocabulary: int, frame: Frame) -> Problem:
    """Ids in a row, or sequences, to predict from left to right."""
    if ids.dim() == 2 and frame.length is not None and frame.length < ids.shape[1]:
        ids = ids[:, : frame.length + 1]
    length = min(frame.length or TEXT_LENGTH, max(1, (ids.shape[-1] - 3) // 2))
    if ids.dim() == 2:
        length = ids.shape[1] - 1
    made = Problem("next-token", ids, vocabulary=vocabulary, length=length, depth=frame.depth)
    made.task("cpu")  # refuses what is too short
    return made


def _of_texts(texts: Sequence[str], labels: Tensor, frame: Frame) -> Problem:
    encode, size = encoder_of("\n".join(texts), frame.tokenizer or "word")
    ids, lengths = encode_all(encode, texts, frame.length or TEXT_LENGTH)
    return Problem("ids", ids, labels, lengths=lengths, vocabulary=size, depth=frame.depth)


def _labels(given: Any, task: str | None) -> Tensor | None:
    """Labels as a tensor: floating-point numbers for regression, whole ones for classes."""
    found = _as_tensor(given, task)
    if found is None:
        return None
    if task == "regress":
        return found.double()
    if not found.is_floating_point():
        return found.long()
    whole = bool((found == found.round()).all())
    if task == "classify" or whole:
        raise BadInputError(
            f"expected {len(found) if found.dim() else 'some'} class numbers, got labels of shape "
            f"{tuple(found.shape)} and type {str(found.dtype).removeprefix('torch.')}",
            hint="convert them to whole numbers, or pass `task='regress'` to predict numbers",
        )
    return found.double()


def _as_tensor(labels: Any, task: str | None) -> Tensor | None:
    """Labels as a tensor; names of classes become numbers in the order of the alphabet."""
    if labels is None:
        return None
    if isinstance(labels, str | Path):
        return read_array(Path(labels))
    if isinstance(labels, list | tuple) and any(isinstance(label, str) for label in labels):
        if None in labels:
            raise BadInputError(
                "expected every file in a subfolder that names its class, got some outside",
                hint="move them, or pass arrays and labels",
            )
        if task == "regress":
            raise BadInputError(
                "expected numbers as labels for task 'regress', got names of classes",
                hint="pass a number for each input, or `task='classify'`",
            )
        order = sorted(set(labels))
        return torch.tensor([order.index(name) for name in labels])
    return torch.as_tensor(labels)
