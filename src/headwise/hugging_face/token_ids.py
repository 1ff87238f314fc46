"""Read token ids: from a file, or from arrays and lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.arrays import plain, read_array
from headwise.endings import ARRAYS
from headwise.errors import BadInputError

#: Token ids: the name of a file, an array, a sequence of ids, or a list of such sequences.
Ids = str | Path | Tensor | np.ndarray | Sequence[Any]


def padded(rows: list[list[int]], pad: int = 0) -> dict[str, Tensor]:
    """Return sequences of token ids as one tensor, with a mask for padding."""
    longest = max(map(len, rows))
    ids = [row + [pad] * (longest - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def ids_batch(ids: Ids, vocabulary: int | None, *, length: int, batch: int) -> dict[str, Tensor]:
    """Read token ids from a file or an array.

    Args:
        ids: A text file of whole numbers between blanks or commas, one sequence per line; or
            .npy, .npz, .pt, .safetensors with (sequences, tokens) or (tokens,). Or such an
            array, or lists, which may differ in length.
        vocabulary: Number of tokens that the model knows, if known.
        length: The largest number of tokens.
        batch: The largest number of sequences.

    Returns:
        Token ids and attention mask.

    Raises:
        BadInputError: There are no ids, or an id is outside of the vocabulary.
    """
    rows = [row[:length] for row in sequences_of(ids)[:batch]]
    if not rows or min(map(len, rows)) < 2:
        place = f" in {str(ids)!r}" if isinstance(ids, str | Path) else ""
        raise BadInputError(
            f"expected sequences of at least two token ids{place}, got fewer",
            hint="write one sequence per line" if place else "pass longer sequences",
        )
    largest, least = max(map(max, rows)), min(map(min, rows))
    if least < 0 or (vocabulary is not None and largest >= vocabulary):
        known = "from 0 on" if vocabulary is None else f"from 0 to {vocabulary - 1}"
        raise BadInputError(
            f"expected token ids {known}, got {least} to {largest}",
            hint="use the tokenizer of this model",
        )
    return padded(rows)


def sequences_of(ids: Ids) -> list[list[int]]:
    """Return the sequences in a file, an array or lists.

    >>> sequences_of(torch.tensor([1, 2])), sequences_of([[1, 2, 3], [4, 5]])
    ([[1, 2]], [[1, 2, 3], [4, 5]])
    """
    if isinstance(ids, str | Path):
        return _in_file(Path(ids))
    several = isinstance(ids, Sequence) and any(isinstance(each, _NESTED) for each in ids)
    rows = ids if several else [ids]
    return [row for each in rows for row in _in_array(plain(each, "`ids`"))]


#: What a sequence within a list of sequences may be.
_NESTED = (Sequence, Tensor, np.ndarray)


def _in_file(file: Path) -> list[list[int]]:
    if file.suffix in ARRAYS:
        return _in_array(read_array(file))
    try:
        lines = file.read_text(encoding="utf-8").replace(",", " ").splitlines()
        return [[int(word) for word in line.split()] for line in lines if line.split()]
    except (OSError, ValueError):
        raise BadInputError(
            f"expected a file of token ids, got {str(file)!r}",
            hint="write whole numbers between blanks, one sequence per line",
        ) from None


def _in_array(found: Tensor) -> list[list[int]]:
    kind = found.dtype
    wrong = kind.is_floating_point or kind.is_complex or kind == torch.bool
    if found.numel() and (wrong or found.ndim not in (1, 2)):
        raise BadInputError(
            f"expected whole numbers of shape (sequences, tokens), got {kind} of shape "
            f"{tuple(found.shape)}",
            hint="save token ids as int64",
        )
    return torch.atleast_2d(found).tolist() if found.numel() else []
