"""Read tokens from any source: arrays, files, folders, text, loaders, datasets, functions."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from headwise.advice.tokens.batches import MOST_SEQUENCES, is_map_dataset, joined_batches
from headwise.advice.tokens.token_set import TokenSet, token_set, with_vocabulary
from headwise.arrays import read_array
from headwise.data.images import (
    digits,
    image_folder,
    patches,
    refuse_channels_last,
    standardised,
)
from headwise.data.text import Vocabulary, read_text, tokenizer_file, windows
from headwise.errors import (
    BadInputError,
    HeadwiseError,
    ParameterError,
    UnreadableFileError,
)

#: Tokens of a longer sequence that are looked at.
MOST_LENGTH = 512

#: Defaults for images: widths, patches and the side that images of a folder are scaled to.
DIGITS_WIDTH, DIGITS_PATCH, IMAGE_WIDTH, IMAGE_PATCH, IMAGE_SIZE = 64, 2, 192, 4, 32

#: The length that text is cut into by default.
TEXT_LENGTH = 256

#: A longer run without spaces is not a word, but text in a script without spaces.
LONGEST_WORD = 64

SourceKind = Literal["digits", "folder", "function", "text", "array", "batches"]


@dataclass(frozen=True)
class Reading:
    """How to read a source; None is the default for its kind.

    Attributes:
        width: Width of the model.
        length: Tokens per sequence.
        patch: Side of an image patch.
        size: Side that images of a folder are scaled to.
        tokenizer: "character", "word" or the path of a tokenizer.json, for text.
        vocabulary: Number of token ids.
        name: Which array of a file with several.
    """

    width: int | None = None
    length: int | None = None
    patch: int | None = None
    size: int | None = None
    tokenizer: str | None = None
    vocabulary: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("patch", "size", "vocabulary"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(
                    f"expected `{name}` of at least 1, got {value}", hint="pass 1 or more"
                )
        known = self.tokenizer in (None, "character", "word")
        if not known and not Path(str(self.tokenizer)).exists():
            raise ParameterError(
                f"expected `tokenizer` character, word or a tokenizer.json, got {self.tokenizer!r}",
                hint="pass one of these",
            )


#: What each kind of source is called.
SHAPES: dict[SourceKind, str] = {
    "digits": "the data set of digits",
    "folder": "a folder of images",
    "function": "PACKAGE:FUNCTION",
    "text": "text",
    "array": "an array",
    "batches": "a source of batches",
}

#: Parameters that each kind of source uses, besides width and length.
USED: dict[SourceKind, set[str]] = {
    "digits": {"patch"},
    "folder": {"patch", "size"},
    "function": {"patch", "vocabulary"},
    "text": {"tokenizer", "vocabulary"},
    "array": {"patch", "vocabulary", "name"},
    "batches": {"patch", "vocabulary"},
}


def read_tokens(source: Any, reading: Reading) -> TokenSet:
    """Read the tokens of a source."""
    if isinstance(source, TokenSet):
        return source
    kind = source_kind(source)
    _refuse_unused(kind, reading)
    if kind == "digits":
        found = _of_images(digits().images, reading, DIGITS_PATCH, DIGITS_WIDTH)
    elif kind == "folder":
        images = image_folder(Path(source), reading.size or IMAGE_SIZE, MOST_SEQUENCES)
        found = _of_images(images, reading, IMAGE_PATCH, IMAGE_WIDTH)
    elif kind == "function":
        found = _of_array(_called(str(source)), reading)
    elif kind == "text":
        found = _of_text(source, reading)
    else:
        found = _of_array(_array(source, reading), reading)
    return replace(_cut(found, reading.length), name=source_name(source))


def source_kind(source: Any) -> SourceKind:
    """What a source is.

    A string is "digits", a path, PACKAGE:FUNCTION or, if it has a line break, text. A list of
    strings is text.

    >>> source_kind("digits"), source_kind("package:function"), source_kind(["some", "text"])
    ('digits', 'function', 'text')
    """
    if isinstance(source, str | Path):
        return _named_kind(source)
    if _is_text(source):
        return "text"
    if isinstance(source, Tensor) or (hasattr(source, "shape") and hasattr(source, "dtype")):
        return "array"
    if is_map_dataset(source) or hasattr(source, "__iter__"):
        return "batches"
    raise BadInputError(
        f"expected tokens, got a {type(source).__name__}",
        hint="pass an array, a path, a DataLoader, a Dataset, text or PACKAGE:FUNCTION",
    )


def source_name(source: Any) -> str:
    """A short name of the source for the answer."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        return str(source)
    return "text" if source_kind(source) == "text" else "tokens"


def _named_kind(source: str | Path) -> SourceKind:
    if source == "digits":
        return "digits"
    if isinstance(source, str) and "\n" in source:
        return "text"
    path = Path(source)
    if path.is_dir():
        return "folder"
    if path.exists():
        return "text" if path.suffix.lower() == ".txt" else "array"
    if ":" in str(source):
        return "function"
    raise UnreadableFileError(
        f"there is no file or folder {source}",
        hint="pass digits, a file ending in .npy, .npz, .pt, .pth, .safetensors or .txt, a folder "
        "of images, or PACKAGE:FUNCTION",
    )


def _is_text(source: Any) -> bool:
    return isinstance(source, list | tuple) and bool(source) and isinstance(source[0], str)


def _refuse_unused(kind: SourceKind, reading: Reading) -> None:
    """Refuse parameters that this kind of source has no use for."""
    given = {"patch", "size", "tokenizer", "vocabulary", "name"} - USED[kind]
    unused = [
        name for name in vars(reading) if name in given and getattr(reading, name) is not None
    ]
    if unused:
        listed = " and ".join(f"`{name}`" for name in unused)
        raise ParameterError(f"{SHAPES[kind]} has no use for {listed}", hint="leave that out")


def _array(source: Any, reading: Reading) -> Tensor:
    if isinstance(source, str | Path):
        return read_array(Path(source), reading.name)
    if source_kind(source) == "array":
        return torch.as_tensor(source)
    # Nested lists of numbers are one array; anything else gives batches.
    if isinstance(source, list | tuple):
        with suppress(TypeError, ValueError, RuntimeError):
            return torch.as_tensor(source)
    return joined_batches(source, f"the {type(source).__name__}")


def _of_images(images: Tensor, reading: Reading, patch: int, width: int) -> TokenSet:
    cut = patches(standardised(images.double()), reading.patch or patch)
    # Checked by the general rule first, then embedded as images always are.
    found = token_set(cut, reading.width or width)
    return replace(found, embedding="linear", width=reading.width or width, images=True)


def _of_array(values: Tensor, reading: Reading) -> TokenSet:
    if values.ndim == 4 and values.is_floating_point():
        if reading.vocabulary is not None:
            raise BadInputError(
                f"expected token ids with `vocabulary={reading.vocabulary}`, got images",
                hint="leave `vocabulary` out, or pass whole numbers",
            )
        refuse_channels_last(values)
        return _of_images(values, reading, IMAGE_PATCH, IMAGE_WIDTH)
    found = token_set(values, reading.width)
    if reading.patch is not None:
        raise BadInputError(
            f"expected images with `patch={reading.patch}`, got "
            f"{'ids' if found.learned else 'vectors'}",
            hint="leave `patch` out, or pass images as floats (batch, channels, height, width)",
        )
    return with_vocabulary(found, reading.vocabulary) if reading.vocabulary else found


def _of_text(source: Any, reading: Reading) -> TokenSet:
    text, name = _text_of(source), source_name(source)
    tokenizer, length = reading.tokenizer or "word", reading.length or TEXT_LENGTH
    if tokenizer in ("character", "word"):
        vocabulary = Vocabulary.of(text, tokenizer)  # type: ignore[arg-type]
        ids, size = vocabulary.encode(text), vocabulary.size
    else:
        encode, size = tokenizer_file(tokenizer)
        ids = encode(text)
    if len(ids) < 2:
        raise BadInputError(
            f"{name}: expected at least 2 tokens, got {len(ids)} (tokenizer {tokenizer})",
            hint=_more_tokens(text.strip(), tokenizer),
        )
    found = token_set(windows(ids, min(length, MOST_LENGTH, len(ids))), reading.width)
    return with_vocabulary(found, reading.vocabulary or size)


def _text_of(source: Any) -> str:
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        return read_text(Path(source))
    return source if isinstance(source, str) else "\n".join(source)


def _more_tokens(text: str, tokenizer: str) -> str:
    if tokenizer == "word" and len(text) > LONGEST_WORD:
        return f"it has {len(text):,} characters: pass `tokenizer=character`, or a tokenizer.json"
    return "pass a longer text, better of hundreds of tokens"


def _cut(found: TokenSet, length: int | None) -> TokenSet:
    if length is None:
        return found
    if not 2 <= length <= found.length:
        raise BadInputError(
            f"expected `length` from 2 to {found.length}, the tokens of a sequence, got {length}",
            hint="pass a value in that range, or longer sequences",
        )
    return replace(found, values=found.values[:, :length])


def _called(source: str) -> Tensor:
    """What PACKAGE:FUNCTION returns, or the first sequences that it yields."""
    module, _, function = source.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    # The code is the user's own: whatever it raises becomes one line, and what it prints goes to
    # the error stream.
    try:
        with redirect_stdout(sys.stderr):
            return joined_batches(getattr(import_module(module), function)(), source)
    except SystemExit as error:
        raise UnreadableFileError(
            f"{source} called sys.exit({error.code!r})",
            hint="pass PACKAGE:FUNCTION that returns tokens and does not exit",
        ) from None
    except HeadwiseError:
        raise
    except Exception as error:
        raise UnreadableFileError(
            f"{source} failed ({type(error).__name__}: {error})",
            hint="pass PACKAGE:FUNCTION that takes no arguments and returns tokens",
        ) from None
    finally:
        sys.path.remove(here)
