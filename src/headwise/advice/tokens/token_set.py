"""Tokens as the first attention layer of an untrained model receives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float

#: Standard deviation of learned positions at initialisation, as in
#: ``headwise.attention.LearnedAdditive``.
POSITION_SPREAD = 0.02

#: The width that ids are embedded in by default, and the most numbers of an embedding table.
ID_WIDTH = 128

#: Larger token values make scores that float64 cannot hold.
LARGEST_VALUE = 1e100

#: Numbers that are checked at a time, so that a large file needs no memory beside itself.
CHECKED_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class TokenSet:
    """Sequences of tokens, and how a model embeds them into ``width`` dimensions.

    ``values`` holds vectors (b, n, c) in the dtype they came in, or ids (b, n) below
    ``vocabulary``. Vectors pass a linear map ("linear") or are already embedded ("given").
    ``declared`` is the size of the vocabulary if it is known; otherwise it ends at the largest id
    seen. ``patch`` is the side of the patches that images were cut into.

    >>> TokenSet(torch.zeros(2, 5, 3).double(), width=16, embedding="linear").length
    5
    """

    values: Tensor
    width: int
    embedding: Literal["linear", "table", "given"]
    vocabulary: int = 0
    name: str = "tokens"
    declared: int | None = None
    images: bool = False
    patch: int | None = None

    @property
    def length(self) -> int:
        """Tokens in a sequence."""
        return self.values.shape[1]

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return self.values.shape[0]

    @property
    def learned(self) -> bool:
        """Whether the tokens are ids: training may place them anywhere."""
        return self.embedding == "table"

    def chosen(self, rows: Tensor) -> TokenSet:
        """Some of the sequences, vectors in float64."""
        some = self.values[rows]
        return replace(self, values=some if self.learned else some.double())

    def embedded(self, seed: int) -> Float[Tensor, "b n d"]:
        """The sequences in a random embedding."""
        if self.embedding == "given":
            return self.values.double()
        if self.learned:
            # Rows for the ids that occur: a whole table of a large vocabulary takes gigabytes.
            ids, places = self.values.unique(return_inverse=True)
            return self._drawn(len(ids), seed)[places]
        channels = self.values.shape[-1]
        return self.values.double() @ self._drawn(channels, seed) * channels**-0.5

    def _drawn(self, rows: int, seed: int) -> Float[Tensor, "rows d"]:
        generator = stream(seed, "embedding")
        return torch.randn(rows, self.width, generator=generator, dtype=torch.float64)


def as_seen(tokens: Float[Tensor, "b n d"], seed: int) -> Float[Tensor, "b n d"]:
    """Embedded tokens as the first attention layer receives them: plus positions, layer norm."""
    shape, generator = tokens.shape[1:], stream(seed, "positions")
    positions = torch.randn(shape, generator=generator, dtype=torch.float64) * POSITION_SPREAD
    return torch.nn.functional.layer_norm(tokens + positions, tokens.shape[-1:])


def token_set(values: Tensor, width: int | None, name: str = "tokens") -> TokenSet:
    """Check tokens and choose how to embed them.

    Whole numbers are ids. Vectors whose width is not ``width`` get a linear embedding.

    >>> token_set(torch.randn(3, 7, 16), None).embedding, token_set(torch.eye(4).long(), 8).width
    ('given', 8)
    """
    if values.dtype == torch.bool or values.is_complex():
        raise BadInputError(
            f"expected floats or whole numbers, got tokens of dtype {values.dtype}",
            hint="pass floats for vectors, whole numbers for ids",
        )
    if not values.is_floating_point():
        _refuse_whole_numbers_that_are_no_ids(values)
        return _ids(_with_batch(values, 1).long(), width, name)
    values = _with_batch(values, 2)
    _refuse_useless(values)
    _refuse_single_numbers(width or values.shape[-1])
    embedding = "given" if width in (None, values.shape[-1]) else "linear"
    return TokenSet(values, width or values.shape[-1], embedding, name=name)


def with_vocabulary(tokens: TokenSet, vocabulary: int) -> TokenSet:
    """The same ids with a vocabulary of known size."""
    if not tokens.learned:
        raise BadInputError(
            f"expected token ids with `vocabulary={vocabulary}`, got "
            f"{'images' if tokens.images else 'vectors'}",
            hint="leave `vocabulary` out, or pass whole numbers",
        )
    if int(tokens.values.max()) >= vocabulary:
        raise BadInputError(
            f"token id {int(tokens.values.max())} is outside a vocabulary of {vocabulary}",
            hint=f"pass ids from 0 to {vocabulary - 1}, or `vocabulary` of at least "
            f"{int(tokens.values.max()) + 1}",
        )
    return replace(tokens, vocabulary=vocabulary, declared=vocabulary)


def _ids(values: Tensor, width: int | None, name: str) -> TokenSet:
    if values.numel() and int(values.min()) < 0:
        raise BadInputError(
            f"expected token ids of 0 or more, got {int(values.min())}", hint="number them from 0"
        )
    _refuse_one_token(values.shape)
    _refuse_equal(values, f"{values.numel()} token ids")
    vocabulary, width = int(values.max()) + 1, width or ID_WIDTH
    return TokenSet(values, width, "table", vocabulary, name)


def _with_batch(values: Tensor, inner: int) -> Tensor:
    wanted = "(sequence, width) or (batch, sequence, width)"
    wanted = "(sequence,) or (batch, sequence)" if inner == 1 else wanted
    if values.ndim == inner:
        values = values.unsqueeze(0)
    if values.ndim != inner + 1 or values.numel() == 0:
        raise BadInputError(
            f"expected tokens of shape {wanted}, got {tuple(values.shape)}",
            hint="reshape them" if values.numel() else "pass at least one token",
        )
    return values


def _refuse_whole_numbers_that_are_no_ids(values: Tensor) -> None:
    if values.ndim > 2:
        dtype = str(values.dtype).removeprefix("torch.")
        raise BadInputError(
            f"expected token ids of shape (sequence,) or (batch, sequence), got whole numbers "
            f"({dtype}) of shape {tuple(values.shape)}",
            hint="pass images and vectors as floats",
        )


def _refuse_single_numbers(width: int) -> None:
    """A layer norm turns a single number into zero."""
    if width < 2:
        raise BadInputError(
            "expected vectors of width 2 or more, got width 1, which a layer norm makes zero",
            hint="pass `width=2` or more to embed them",
        )


def _parts(values: Tensor) -> tuple[Tensor, ...]:
    """The sequences a few at a time."""
    return values.split(max(1, CHECKED_AT_ONCE // values[0].numel()))


def _refuse_useless(values: Tensor) -> None:
    bad = sum(int((~torch.isfinite(part)).sum()) for part in _parts(values))
    if bad:
        raise BadInputError(
            f"{bad} of {values.numel()} token values are not finite",
            hint="remove NaN and infinity from the tokens",
        )
    largest = max(float(part.abs().max()) for part in _parts(values))
    if largest > LARGEST_VALUE:
        raise BadInputError(
            f"token values reach {largest:.0e}, where scores overflow",
            hint="scale the tokens to about 1",
        )
    _refuse_one_token(values.shape)
    _refuse_equal(values, f"{values.shape[0] * values.shape[1]} tokens")


def _refuse_equal(values: Tensor, what: str) -> None:
    """Among equal tokens there is nothing to choose, even if the sequences differ."""
    hint = "pass sequences with at least two different tokens"
    if all(bool((part == values[:1, :1]).all()) for part in _parts(values)):
        raise BadInputError(f"all {what} are equal", hint=hint)
    if all(bool((part == part[:, :1]).all()) for part in _parts(values)):
        raise BadInputError("the tokens of every sequence are equal to each other", hint=hint)


def _refuse_one_token(shape: torch.Size) -> None:
    if shape[1] < 2:
        raise BadInputError(
            "expected at least two tokens per sequence, got one",
            hint="pass longer sequences",
        )
