"""Refuse what a scan cannot measure, in one line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.view import AttentionMaps, AttentionView
from headwise.checks import of_type
from headwise.errors import BadInputError, HeadwiseError, ParameterError

#: What a model raises if it is called with arguments that do not fit it.
_MISFIT = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


def refuse_wrong_question(
    model: Any, batch: Any, layers: Collection[int | str] | None, heads: Collection[int] | None
) -> None:
    """Refuse arguments of ``scan`` of the wrong type."""
    of_type("`model`", model, nn.Module, "a torch module")
    refuse_wrong_batch(batch)
    if heads is not None and not all(isinstance(each, int) and each >= 0 for each in heads):
        raise ParameterError(f"expected heads from 0 on, got {list(heads)}", hint="pass [0, 1]")


def refuse_wrong_batch(batch: Any) -> None:
    """Refuse what no model is called with."""
    if not isinstance(batch, Tensor | tuple | Mapping):
        raise ParameterError(
            f"expected a tensor, a tuple or a mapping as `inputs`, got {type(batch).__name__}",
            hint="pass what the model is called with, for example the output of a tokenizer",
        )


def refuse_unmasked_padding(model: nn.Module, batch: Any) -> None:
    """Refuse token ids that end or begin with padding and come without an attention mask."""
    ids = batch.get("input_ids") if isinstance(batch, Mapping) else None
    config = getattr(model, "config", None)
    pad = getattr(config, "pad_token_id", None)
    if not isinstance(ids, Tensor) or not isinstance(pad, int) or "attention_mask" in batch:
        return
    ends = getattr(config, "eos_token_id", None) == pad  # one such token is then the end of a text
    run = 2 if ends else 1
    if ids.ndim != 2 or ids.shape[1] <= run:
        return
    if any(bool((edge == pad).all(-1).any()) for edge in (ids[:, :run], ids[:, -run:])):
        raise BadInputError(
            f"expected an attention_mask for input_ids with padding (token {pad}), got none",
            hint="pass attention_mask, 1 for real tokens, as the tokenizer returns it",
        )


def refuse_not_finite(name: str, view: AttentionView | AttentionMaps) -> None:
    """Refuse activations that are not numbers, and name their layer."""
    read = (view.maps,) if isinstance(view, AttentionMaps) else (view.queries, view.keys)
    if isinstance(view, AttentionView) and view.values is not None:
        read = (*read, view.values)
    if not all(bool(tensor.isfinite().all()) for tensor in read):
        padded = isinstance(view, AttentionView) and view.has_empty_rows
        raise BadInputError(
            f"expected finite activations, got NaN or infinity in layer {name!r}",
            hint="use float32: the eager attention of transformers gives NaN for float64 models "
            "with padding on the left"
            if padded and view.dtype == torch.float64
            else "check the inputs and the layers before it",
        )


def real_parts(view: Any) -> list[Any]:
    """Return the view without padding, or refuse a sequence that is padding alone."""
    parts = list(view.unpadded())
    if any(0 in part.shape for part in parts):
        raise BadInputError(
            "expected at least one real token in each sequence, got one that is padding alone",
            hint="leave that sequence out",
        )
    return parts


def refuse_absent(
    layers: Collection[int | str] | None, seen: list[str], heads: Collection[int] | None, most: int
) -> None:
    """Refuse layers and heads that the model does not have."""
    known = {*seen, *range(len(seen))}
    absent = [each for each in layers or () if each not in known]
    if absent or not (layers is None or layers):
        raise BadInputError(
            f"expected layers from 0 to {len(seen) - 1}, got {_listed(absent)}",
            hint=f"the first layer is {seen[0]!r}" if seen else "check the model",
        )
    absent = [each for each in heads or () if each >= most]
    if absent or not (heads is None or heads):
        raise BadInputError(
            f"expected heads from 0 to {most - 1}, got {_listed(absent)}",
            hint="name heads of the model" if absent else "name at least one",
        )


def _listed(absent: list[Any]) -> str:
    shown = ", ".join(map(repr, absent[:3])) or "none"
    return shown + (" and more" if len(absent) > 3 else "")


#: What to do if a model cannot be called with a batch.
CHECK_BATCH = "check the batch; a model with two towers needs text and images together"


@contextmanager
def one_line_if_unfit(
    model: nn.Module, measuring: Callable[[], bool], hint: str = CHECK_BATCH
) -> Iterator[None]:
    """Say in one line that a model cannot be called with a batch; our own errors pass."""
    try:
        yield
    except HeadwiseError:
        raise
    except _MISFIT as error:
        if measuring():
            raise
        reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
        raise BadInputError(
            f"{type(model).__name__} could not run on this batch: {reason[:200].rstrip('.')}",
            hint=hint,
        ) from error
