"""Masks as callers give them: a name, a tensor, or the arguments of ``nn.MultiheadAttention``."""

from __future__ import annotations

from functools import reduce
from operator import and_

import torch
from torch import Tensor

from headwise.attention.masks import (
    EVERYTHING,
    Additive,
    Allowed,
    Causal,
    Mask,
    Padding,
    SlidingWindow,
)
from headwise.errors import BadInputError

MaskLike = Mask | Tensor | str


def as_mask(mask: MaskLike) -> Mask:
    """Turn a name or a tensor into a mask.

    Args:
        mask: A mask; a name ("none", "causal", "window:128", or several joined by +); a boolean
            tensor (..., queries, keys), True where attending is allowed; or a float tensor that
            is added to the logits.

    Returns:
        The mask.

    Raises:
        BadInputError: The name is unknown, or the tensor has the wrong shape or dtype.

    Example:
        >>> as_mask("causal+window:128")
        Both(first=Causal(offset=0), second=SlidingWindow(width=128))
    """
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, str):
        return reduce(and_, map(_named, mask.split("+")))
    if mask.ndim < 2:
        raise BadInputError(
            f"expected a mask of shape (..., queries, keys), got {tuple(mask.shape)}",
            hint="use Padding(real) for one row of booleans per sequence",
        )
    if mask.dtype == torch.bool:
        return Allowed(mask)
    if mask.is_floating_point():
        return Additive(mask)
    dtype = str(mask.dtype).removeprefix("torch.")
    raise BadInputError(
        f"expected a boolean or float mask, got dtype {dtype}",
        hint="pass True where attending is allowed, or floats that are added to the logits",
    )


def torch_mask(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, *, batch: int, heads: int
) -> Mask:
    """Return the mask that two arguments of ``nn.MultiheadAttention`` describe together.

    Torch's convention differs from ``as_mask``: a boolean True forbids attending. Floats are added
    to the logits in both.

    Args:
        attn_mask: (queries, keys) or (batch · heads, queries, keys).
        key_padding_mask: (batch, keys), or (keys,) for unbatched input; True for padding.
        batch: Number of sequences.
        heads: Number of heads.

    Returns:
        The combined mask for logits of shape (batch, heads, queries, keys).

    Raises:
        BadInputError: A shape or dtype does not fit.

    Example:
        >>> torch_mask(None, torch.tensor([[False, True]]), batch=1, heads=2).real
        tensor([[ True, False]])
    """
    found: Mask = EVERYTHING
    if attn_mask is not None:
        if attn_mask.ndim == 3 and attn_mask.shape[0] == batch * heads:
            attn_mask = attn_mask.unflatten(0, (batch, heads))
        elif attn_mask.ndim != 2:
            raise BadInputError(
                "expected attn_mask of shape (queries, keys) or "
                f"({batch * heads}, queries, keys), got {tuple(attn_mask.shape)}",
                hint="the leading dimension is batch times heads",
            )
        found &= as_mask(~attn_mask if attn_mask.dtype == torch.bool else attn_mask)
    if key_padding_mask is not None:
        rows = key_padding_mask.unsqueeze(0) if key_padding_mask.ndim == 1 else key_padding_mask
        if rows.ndim != 2 or rows.shape[0] != batch:
            raise BadInputError(
                f"expected key_padding_mask of shape ({batch}, keys), got "
                f"{tuple(key_padding_mask.shape)}",
                hint="pass one row per sequence, True for padding",
            )
        found &= Padding(~rows) if rows.dtype == torch.bool else as_mask(rows[:, None, None, :])
    return found


def _named(name: str) -> Mask:
    kind, _, number = name.partition(":")
    if name == "none":
        return EVERYTHING
    if kind == "causal" and (not number or number.isdecimal()):
        return Causal(int(number or 0))
    if kind == "window" and number.isdecimal():
        return SlidingWindow(int(number))
    raise BadInputError(
        f"expected mask none, causal, window:128 or causal+window:128, got {name!r}",
        hint="pass one of these names, or a tensor",
    )
