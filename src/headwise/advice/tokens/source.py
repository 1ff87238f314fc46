"""Read tokens from any source, and choose how a model embeds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.advice.tokens.token_set import TokenSet, token_set, with_vocabulary
from headwise.checks import whole
from headwise.data.images import patches, standardised
from headwise.data.sources import SourceKind, read_source
from headwise.data.text import encoder_of, windows
from headwise.errors import BadInputError, ParameterError

#: Sequences taken from a folder, loader or dataset: more would not change the answer.
MOST_SEQUENCES = 256

#: Tokens of a longer sequence that are looked at.
MOST_LENGTH = 512

#: Defaults for images: widths and patches.
DIGITS_WIDTH, DIGITS_PATCH, IMAGE_WIDTH, IMAGE_PATCH = 64, 2, 192, 4

#: The length that text is cut into by default.
TEXT_LENGTH = 256

#: A longer run without spaces is not a word, but text in a script without spaces.
LONGEST_WORD = 64


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
            if getattr(self, name) is not None:
                whole(f"`{name}`", getattr(self, name))


#: What each kind of source is called, and the parameters it uses, besides width and length.
USED: dict[SourceKind, tuple[str, set[str]]] = {
    "digits": ("the data set of digits", {"patch"}),
    "pictures": ("a folder of images", {"patch", "size"}),
    "function": ("PACKAGE:FUNCTION", {"patch", "vocabulary"}),
    "text": ("text", {"tokenizer", "vocabulary"}),
    "array": ("an array", {"patch", "vocabulary", "name"}),
    "batches": ("a source of batches", {"patch", "vocabulary"}),
}


def read_tokens(source: Any, reading: Reading) -> TokenSet:
    """Read the tokens of a source."""
    if isinstance(source, TokenSet):
        return source
    if reading.name is not None and not isinstance(source, str | Path):
        raise ParameterError(
            f"expected a file of arrays with `name`, got {type(source).__name__}",
            hint="leave `name` out, or pass the path of a file",
        )
    found = read_source(
        source, most=MOST_SEQUENCES, size=reading.size, name=reading.name, name_parameter="name"
    )
    _refuse_unused(found.kind, reading)
    if found.values is None:
        tokens = _of_text("\n".join(found.texts), found.name, reading)
    elif found.kind == "digits":
        tokens = _of_images(found.values, reading, DIGITS_PATCH, DIGITS_WIDTH)
    else:
        tokens = _of_array(found.values, reading)
    return replace(_cut(tokens, reading.length), name=found.name)


def _refuse_unused(kind: SourceKind, reading: Reading) -> None:
    """Refuse parameters that this kind of source has no use for."""
    shape, used = USED[kind]
    given = [name for name, value in vars(reading).items() if value is not None]
    unused = [f"`{name}`" for name in given if name not in used | {"width", "length"}]
    if unused:
        raise ParameterError(
            f"{shape} has no use for {' and '.join(unused)}", hint="leave that out"
        )


def _of_images(images: Tensor, reading: Reading, patch: int, width: int) -> TokenSet:
    side = reading.patch or patch
    cut = patches(standardised(images.double()), side)
    # Checked by the general rule first, then embedded as images always are.
    found = token_set(cut, reading.width or width)
    wide = reading.width or width
    return replace(found, embedding="linear", width=wide, images=True, patch=side)


def _of_array(values: Tensor, reading: Reading) -> TokenSet:
    # Bytes of four axes are pixels; images are standardised, so their scale does not matter.
    if values.ndim == 4 and (values.is_floating_point() or values.dtype == torch.uint8):
        found = _of_images(values, reading, IMAGE_PATCH, IMAGE_WIDTH)
    else:
        found = token_set(values, reading.width)
    if reading.patch is not None and not found.images:
        raise BadInputError(
            f"expected images with `patch={reading.patch}`, got "
            f"{'ids' if found.learned else 'vectors'}",
            hint="leave `patch` out, or pass images (batch, channels, height, width)",
        )
    return with_vocabulary(found, reading.vocabulary) if reading.vocabulary else found


def _of_text(text: str, name: str, reading: Reading) -> TokenSet:
    tokenizer, length = reading.tokenizer or "word", reading.length or TEXT_LENGTH
    encode, size = encoder_of(text, tokenizer)
    ids = encode(text)
    if len(ids) < 2:
        raise BadInputError(
            f"{name}: expected at least 2 tokens, got {len(ids)} (tokenizer {tokenizer})",
            hint=_more_tokens(text.strip(), tokenizer),
        )
    found = token_set(windows(ids, min(length, MOST_LENGTH, len(ids))), reading.width)
    return with_vocabulary(found, reading.vocabulary or size)


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
