"""Cut a text into sequences to calibrate on and others to judge on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.errors import BadInputError, ParameterError
from headwise.hugging_face.inputs import encoded, refuse_unknown

Batches = list[dict[str, Tensor]]


@dataclass(frozen=True, eq=False)
class Sample:
    """Batches to calibrate on, to heal on, and of other text to judge on."""

    calibration: Batches
    healing: Batches
    held_out: Batches


def refuse_no_text(text: Any) -> None:
    """Refuse what is no text, and the name of a file where its content is meant."""
    readable = "pass Path(...).read_text()"
    if not isinstance(text, str):
        raise ParameterError(f"expected a `text`, got {text!r}", hint=readable)
    if _names_a_file(text):
        raise BadInputError("expected a `text`, got the name of a file", hint=readable)


def _names_a_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # most texts are too long for a name
        return False


def sample_text(
    tokenizer: Any,
    text: str,
    *,
    tokens: int | None,
    usual: int,
    held_out: int,
    length: int,
    needed: int,
    wrap: bool,
) -> Sample:
    """Tokenise a text and divide it: its beginning calibrates, its end judges, all else heals.

    Args:
        tokenizer: Of the model.
        text: The text.
        tokens: Tokens to calibrate on, at most; ``usual`` by default, or what is needed if more.
        usual: See ``tokens``.
        held_out: Tokens to judge on, at most a third of the text.
        length: Tokens of a sequence.
        needed: The least number of tokens to calibrate on.
        wrap: Put the special tokens of an encoder around every sequence.

    Returns:
        The batches: one sequence each for a decoder, four to heal on, and sixteen for an encoder.

    Raises:
        BadInputError: The text is too short, or the tokenizer knows less than half of it or has no
            special tokens to put around sequences.
        ParameterError: ``tokens`` or ``held_out`` is less than what is needed.
    """
    inner = length - 2 if wrap else length
    least, judged = -(-needed // inner), 6 if wrap else 1
    tokens = max(usual, least * inner) if tokens is None else tokens
    _refuse_few("tokens", tokens, least * inner, length)
    _refuse_few("held_out", held_out, judged * inner, length)
    ids = encoded(tokenizer, text, add_special_tokens=False, verbose=False)["input_ids"]
    refuse_unknown(tokenizer, ids)
    around = (tokenizer.cls_token_id, tokenizer.sep_token_id) if wrap else None
    if around is not None and None in around:
        raise BadInputError(
            "expected a tokenizer with a cls_token and a sep_token to put around a text, got one "
            "without",
            hint="save the model's own tokenizer beside it",
        )
    rows = [ids[at : at + inner] for at in range(0, len(ids) - inner + 1, inner)]
    judged = max(judged, min(held_out // inner, len(rows) // 3))
    if len(rows) < least + judged:
        raise BadInputError(
            f"expected a text of at least {(least + judged) * inner:,} tokens for these ranks, got "
            f"{len(ids):,}",
            hint="pass a longer text",
        )
    first = rows[: min(len(rows) - judged, tokens // inner)]
    size = 16 if wrap else 1
    return Sample(
        _batches(first, around, size),
        _batches(rows[:-judged], around, max(size, 4)),
        _batches(rows[-judged:], around, size),
    )


def _refuse_few(name: str, given: int, needed: int, length: int) -> None:
    if given < needed:
        raise ParameterError(
            f"expected `{name}` of at least {needed:,} for sequences of {length} in this model, "
            f"got {given:,}",
            hint=f"pass {needed} or more, or a smaller `length`",
        )


def _batches(rows: list[list[int]], around: tuple[int, int] | None, size: int) -> Batches:
    if around is None:
        return [{"input_ids": each} for each in torch.tensor(rows).split(size)]
    whole = torch.tensor([[around[0], *row, around[1]] for row in rows])
    return [
        {"input_ids": each, "attention_mask": torch.ones_like(each)} for each in whole.split(size)
    ]
