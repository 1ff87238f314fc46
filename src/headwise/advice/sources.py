"""Where tokens come from: the embedded digits, a file, a folder of images, or a function."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from torch import Tensor

from headwise.advice.batches import MOST_SEQUENCES, joined_batches
from headwise.advice.embedding import TokenSet, token_set, with_vocabulary
from headwise.advice.evidence import MOST_LENGTH
from headwise.arrays import read_array
from headwise.data.images import (
    digits,
    image_folder,
    patches,
    refuse_channels_last,
    standardised,
)
from headwise.data.text import Vocabulary, read_text, tokenizer_file, windows
from headwise.errors import BadInputError, HeadwiseError, UnreadableFileError

#: Widths and patches when none is given.
DIGITS_WIDTH, DIGITS_PATCH, IMAGE_WIDTH, IMAGE_PATCH, IMAGE_SIZE = 64, 2, 192, 4, 32

#: A longer stretch without spaces and marks is no word, but a text of a script without spaces.
LONGEST_WORD = 64


@dataclass(frozen=True)
class Reading:
    """How data are to be read; None is what fits them.

    ``patch`` and ``size`` are for images, ``tokenizer`` for text ("character", "word" or a
    tokenizer.json), ``name`` for a file of several arrays.

    >>> Reading(patch=1).patch
    1
    """

    width: int | None = None
    length: int | None = None
    patch: int | None = None
    size: int = IMAGE_SIZE
    tokenizer: str = "word"
    vocabulary: int | None = None
    name: str | None = None


#: What a source can be, and which options of reading, besides width and length, it has a use for.
OPTIONS = {
    "digits": {"patch"},
    "folder": {"patch", "size"},
    "function": {"patch", "vocabulary"},
    "text": {"tokenizer", "vocabulary"},
    "array": {"patch", "vocabulary", "name"},
}


def kind_of(source: str) -> str:
    """What a source is, by its name; a file or folder must be there.

    >>> kind_of("digits"), kind_of("package:function")
    ('digits', 'function')
    """
    path = Path(source)
    if source == "digits":
        return "digits"
    if path.is_dir():
        return "folder"
    if path.exists():
        return "text" if path.suffix.lower() == ".txt" else "array"
    if ":" in source:
        return "function"
    raise UnreadableFileError(
        f"there is no file or folder {source}",
        hint="pass digits, a file ending in .npy, .npz, .pt, .pth, .safetensors or .txt, a folder "
        "of images, or PACKAGE:FUNCTION",
    )


def tokens_from(source: str, reading: Reading) -> TokenSet:
    """Tokens by name, path or PACKAGE:FUNCTION.

    >>> tokens_from("digits", Reading()).values.shape
    torch.Size([1797, 16, 4])
    """
    path, kind = Path(source), kind_of(source)
    if kind == "digits":
        found = _of_images(digits().images, reading, DIGITS_PATCH, DIGITS_WIDTH)
    elif kind == "folder":
        images = image_folder(path, reading.size, MOST_SEQUENCES)
        found = _of_images(images, reading, IMAGE_PATCH, IMAGE_WIDTH)
    elif kind == "function":
        found = _of_array(_loaded(source), reading)
    elif kind == "text":
        found = _of_text(path, reading)
    else:
        found = _of_array(read_array(path, reading.name), reading)
    return replace(_cut(found, reading.length), name=source)


def _of_images(images: Tensor, reading: Reading, patch: int, width: int) -> TokenSet:
    cut = patches(standardised(images.double()), reading.patch or patch)
    # A check by the general rule, then the embedding that images always get.
    found = token_set(cut, reading.width or width)
    return replace(found, embedding="linear", width=reading.width or width)


def _of_array(values: Tensor, reading: Reading) -> TokenSet:
    if values.ndim == 4 and values.is_floating_point():
        if reading.vocabulary is not None:
            raise BadInputError(
                f"a vocabulary of {reading.vocabulary} was given, and the tokens are patches of "
                "images",
                hint="leave --vocabulary out, or pass whole numbers, ids",
            )
        refuse_channels_last(values)
        return _of_images(values, reading, IMAGE_PATCH, IMAGE_WIDTH)
    found = token_set(values, reading.width)
    if reading.patch is not None:
        raise BadInputError(
            f"a patch of {reading.patch} was given, and the tokens are "
            f"{'ids' if found.learned else 'vectors'}",
            hint="leave --patch out, or pass images as floats (batch, channels, height, width)",
        )
    return with_vocabulary(found, reading.vocabulary) if reading.vocabulary else found


def _of_text(path: Path, reading: Reading) -> TokenSet:
    text, length = read_text(path), reading.length or 256
    if reading.tokenizer in ("character", "word"):
        vocabulary = Vocabulary.of(text, reading.tokenizer)
        ids, size = vocabulary.encode(text), vocabulary.size
    else:
        encode, size = tokenizer_file(reading.tokenizer)
        ids = encode(text)
    if len(ids) < 2:
        raise BadInputError(
            f"{path} has too few tokens ({len(ids)}, tokenizer {reading.tokenizer})",
            hint=_more_tokens(text.strip(), reading.tokenizer),
        )
    found = token_set(windows(ids, min(length, MOST_LENGTH, len(ids))), reading.width)
    return with_vocabulary(found, reading.vocabulary or size)


def _more_tokens(text: str, tokenizer: str) -> str:
    """How a text that is one token could become more."""
    if tokenizer == "word" and len(text) > LONGEST_WORD:
        return f"it has {len(text):,} characters: choose --tokenizer character, or a tokenizer.json"
    return "pass a text of at least 2 tokens, better of hundreds"


def _cut(found: TokenSet, length: int | None) -> TokenSet:
    if length is None:
        return found
    if not 2 <= length <= found.length:
        raise BadInputError(
            f"sequences have {found.length} tokens, {length} were asked for",
            hint=f"pass a length from 2 to {found.length}",
        )
    return replace(found, values=found.values[:, :length])


def _loaded(source: str) -> Tensor:
    """What the function gives, or the first sequences that it yields."""
    module, _, function = source.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    # The code is the user's own: whatever it raises is told in one line, and what it prints is
    # no part of the answer.
    try:
        with redirect_stdout(sys.stderr):
            given = getattr(import_module(module), function)()
            return joined_batches(given, source)
    except SystemExit as error:
        raise UnreadableFileError(
            f"{source} ended itself by sys.exit({error.code!r})",
            hint="name a function that gives tokens, and does not exit, as PACKAGE:FUNCTION",
        ) from None
    except HeadwiseError:
        raise
    except Exception as error:
        raise UnreadableFileError(
            f"{source} failed ({type(error).__name__}: {error})",
            hint="name a function without arguments that gives tokens, as PACKAGE:FUNCTION",
        ) from None
    finally:
        sys.path.remove(here)
