"""Read data for a trial: arrays, files, folders of images or texts, or text itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.arrays import read_array
from headwise.data.images import PICTURES, digits, image_files
from headwise.data.text import Vocabulary, read_text, tokenizer_file
from headwise.errors import BadInputError, ParameterError, UnreadableFileError
from headwise.trials.problems import Problem

#: What built-in models can be trained to do.
TASKS = ("classify", "next-token")

#: The largest side of a patch, and the side of images of a folder, unless given.
LARGEST_PATCH, IMAGE_SIZE = 4, 32

#: Small images get smaller patches, so that at least this many tokens are left.
FEWEST_PATCHES = 16

#: Tokens of a sequence of text, unless given.
TEXT_LENGTH = 64


@dataclass(frozen=True)
class Frame:
    """How to read the data, and the frame of the model; None is the default for the data.

    Attributes:
        task: "classify" or "next-token"; by default "classify" if there are labels.
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
            f"expected task 'classify' or 'next-token', got {frame.task!r}",
            hint="pass one of them, or your own model to trial_of()",
        )
    if isinstance(inputs, str | Path) and "\n" not in str(inputs):
        return _of_place(inputs, labels, frame)
    if isinstance(inputs, str):
        return _of_text(inputs, frame)
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str):
        if labels is None:
            return _of_text("\n".join(inputs), frame)
        return _of_texts(list(inputs), _class_numbers(labels), frame)
    return _of_array(torch.as_tensor(inputs), labels, frame)


def _of_place(place: str | Path, labels: Any, frame: Frame) -> Problem:
    """The digits, a folder or a file."""
    path = Path(place)
    if place == "digits" and labels is None:
        found = digits()
        return _of_images(found.images, found.labels, frame)
    if path.is_dir():
        _refuse_labels(path, labels)
        return _of_folder(path, frame)
    if not path.exists():
        raise UnreadableFileError(
            f"there is no file or folder {place}",
            hint="pass digits, an array file, a text file, or a folder of images or texts",
        )
    if path.suffix.lower() in (".txt", ".md", ".py"):
        _refuse_labels(path, labels)
        return _of_text(read_text(path), frame)
    return _of_array(read_array(path), labels, frame)


def _refuse_labels(path: Path, labels: Any) -> None:
    if labels is not None:
        raise ParameterError(
            f"expected no labels beside {path}, got some",
            hint="put the files of each class into its own subfolder; text needs no labels",
        )


def _of_folder(folder: Path, frame: Frame) -> Problem:
    """Images or texts; subfolders are classes, and texts without them are one text."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    if pictures:
        images = torch.stack(image_files(pictures, frame.size or IMAGE_SIZE))
        return _of_images(images, _folder_classes(folder, pictures), frame)
    texts = [path for path in files if path.suffix.lower() in (".txt", ".md", ".py")]
    if not texts:
        raise UnreadableFileError(
            f"expected images or texts in {folder}, got {len(files)} other files",
            hint=f"files should end in .txt or {', '.join(PICTURES[:3])}",
        )
    if frame.task == "next-token" or all(path.parent == folder for path in texts):
        return _of_text("\n".join(map(read_text, texts)), frame)
    return _of_texts(list(map(read_text, texts)), _folder_classes(folder, texts), frame)


def _folder_classes(folder: Path, files: Sequence[Path]) -> Tensor:
    """The number of each file's first subfolder, in the order of their names."""
    names = [path.relative_to(folder).parts[0] for path in files]
    if any(folder / name == path for name, path in zip(names, files, strict=True)):
        raise BadInputError(
            f"expected every file of {folder} in a subfolder that names its class, got some "
            "outside",
            hint="move them, or pass arrays and labels",
        )
    order = sorted(set(names))
    return torch.tensor([order.index(name) for name in names])


def _of_array(values: Tensor, labels: Any, frame: Frame) -> Problem:
    if values.dim() == 4:
        return _of_images(values.double(), _class_numbers(labels), frame)
    if values.is_floating_point() or values.dim() not in (1, 2):
        raise BadInputError(
            f"expected images (b, channels, side, side) or whole-number ids (b, n) or (n), got "
            f"shape {tuple(values.shape)} of {str(values.dtype).removeprefix('torch.')}",
            hint="reshape the inputs, or pass your own model to trial_of()",
        )
    ids, vocabulary = values.long(), int(values.max()) + 1 if values.numel() else 0
    if values.numel() and int(values.min()) < 0:
        raise BadInputError(
            f"expected ids from 0 up, got {int(values.min())}", hint="number tokens from 0"
        )
    if labels is None or frame.task == "next-token":
        return _next_token(ids, vocabulary, frame)
    return Problem("ids", ids, _class_numbers(labels), vocabulary=vocabulary, depth=frame.depth)


def _of_images(images: Tensor, labels: Tensor | None, frame: Frame) -> Problem:
    if frame.task == "next-token":
        raise ParameterError(
            "expected ids or text for task 'next-token', got images", hint="pass task='classify'"
        )
    patch = frame.patch or _fitting_patch(images.shape[-1])
    return Problem("images", images, labels, patch=patch, depth=frame.depth)


def _fitting_patch(side: int) -> int:
    """The largest patch up to 4 that tiles the image into enough tokens."""
    fits = [p for p in range(1, LARGEST_PATCH + 1) if side % p == 0]
    return max((p for p in fits if (side // p) ** 2 >= FEWEST_PATCHES), default=1)


def _of_text(text: str, frame: Frame) -> Problem:
    if frame.task == "classify":
        raise ParameterError(
            "expected labels for task 'classify', got one text",
            hint="pass a list of texts with labels, or task='next-token'",
        )
    ids, size = _encoded(text, frame.tokenizer or "character")
    return _next_token(ids, size, frame)


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


def _of_texts(texts: list[str], labels: Tensor | None, frame: Frame) -> Problem:
    tokenizer, length = frame.tokenizer or "word", frame.length or TEXT_LENGTH
    if tokenizer not in ("character", "word"):
        rows = [tokenizer_file(tokenizer)[0](text)[:length] for text in texts]
        lengths = torch.tensor([max(1, len(row)) for row in rows])
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        vocabulary = tokenizer_file(tokenizer)[1]
    else:
        known = Vocabulary.of("\n".join(texts), tokenizer)  # pyright: ignore[reportArgumentType]
        ids, lengths = known.encode_all(texts, length)
        vocabulary = known.size
    return Problem("ids", ids, labels, lengths=lengths, vocabulary=vocabulary, depth=frame.depth)


def _encoded(text: str, tokenizer: str) -> tuple[Tensor, int]:
    if tokenizer in ("character", "word"):
        known = Vocabulary.of(text, tokenizer)  # pyright: ignore[reportArgumentType]
        return known.encode(text), known.size
    encode, size = tokenizer_file(tokenizer)
    return encode(text), size


def _class_numbers(labels: Any) -> Tensor | None:
    """Labels as a tensor; names of classes become numbers in the order of the alphabet."""
    if labels is None:
        return None
    if isinstance(labels, str | Path):
        return read_array(Path(labels))
    if isinstance(labels, list | tuple) and labels and isinstance(labels[0], str):
        order = sorted(set(labels))
        return torch.tensor([order.index(name) for name in labels])
    return torch.as_tensor(labels)
