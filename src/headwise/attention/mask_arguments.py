"""Masks as callers give them: a name, a tensor, or the arguments of ``nn.MultiheadAttention``."""

from __future__ import annotations

from functools import reduce
from operator import and_

import torch
from torch import Tensor

from headwise.attention.grid import Grid
from headwise.attention.masks import (
    EVERYTHING,
    Additive,
    Allowed,
    Causal,
    Mask,
    Padding,
    SlidingWindow,
)
from headwise.errors import BadInputError, ParameterError
from headwise.mask_names import MASK_NAME

MaskLike = Mask | Tensor | str


def as_mask(mask: MaskLike) -> Mask:
    """Turn a name or a tensor into a mask.

    Args:
        mask: A mask; a name ("none", "causal", "window:128", or several joined by +); a boolean
            tensor (..., queries, keys), True where attending is allowed; or a float tensor that
            is added to the logits.

    Returns:
        The mask itself; ``Allowed`` or ``Additive`` for a tensor; ``Both`` for several names.

    Raises:
        BadInputError: The tensor has the wrong shape or dtype.
        ParameterError: The name is unknown.

    Example:
        >>> as_mask("causal+window:128")
        Both(first=Causal(offset=0), second=SlidingWindow(width=128))
    """
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, str):
        if not MASK_NAME.fullmatch(mask):
            raise ParameterError(
                f"expected `mask` none, causal, window:128 or causal+window:128, got {mask!r}",
                hint="pass one of these names, or a tensor",
            )
        return reduce(and_, map(_named, mask.split("+")))
    if not isinstance(mask, Tensor):
        raise ParameterError(
            f"expected `mask` to be a name or a tensor, got {type(mask).__name__}",
            hint="pass 'causal' for example, or booleans (queries, keys)",
        )
    if mask.ndim < 2:
        raise BadInputError(
            f"expected a mask of shape (..., queries, keys), got {tuple(mask.shape)}",
            hint="use Padding(real) for one row of booleans per sequence",
        )
    if mask.dtype == torch.bool:
        return Allowed(mask)
    if mask.dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        return Additive(mask)
    dtype = str(mask.dtype).removeprefix("torch.")
    raise BadInputError(
        f"expected a boolean or float mask, got dtype {dtype}",
        hint="pass True where attending is allowed, or floats that are added to the logits",
    )


def given_mask(mask: MaskLike) -> Mask:
    """Turn the mask that a person passed into a mask; floats of zeros and ones are refused.

    Added to the logits, zeros and ones mask nothing, and such a tensor is nearly always meant as
    booleans. Layers do not refuse it: there floats are added, as torch adds them.

    Args:
        mask: As in ``as_mask``.

    Returns:
        The mask.

    Raises:
        BadInputError: As in ``as_mask``, or if a float tensor holds zeros and ones alone.
        ParameterError: The name is unknown.

    Example:
        >>> given_mask(torch.eye(2))
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: expected a mask of booleans, or of floats that are added ...
    """
    found = as_mask(mask)
    if isinstance(mask, Tensor) and isinstance(found, Additive):
        ones = mask == 1
        if bool(ones.any()) and bool((~ones).any()) and bool((ones | (mask == 0)).all()):
            raise BadInputError(
                "expected a mask of booleans, or of floats that are added to the logits, got "
                "floats that are all 0 or 1",
                hint="save it as bool, True where attending is allowed",
            )
    return found


def torch_mask(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    *,
    batch: int,
    heads: int,
    recognise: bool = False,
) -> Mask:
    """Return the mask that two arguments of ``nn.MultiheadAttention`` describe together.

    Torch's convention differs from ``as_mask``: a boolean True forbids attending. Floats are added
    to the logits in both.

    Args:
        attn_mask: (queries, keys) or (batch · heads, queries, keys).
        key_padding_mask: (batch, keys), or (keys,) for unbatched input; True for padding.
        batch: Number of sequences.
        heads: Number of heads.
        recognise: Whether to look for the rules that the tensors follow. This reads them, so a
            GPU has to wait.

    Returns:
        The combined mask for logits of shape (batch, heads, queries, keys).

    Raises:
        BadInputError: A shape or dtype does not fit.
    """
    found: Mask = EVERYTHING
    made = recognised_mask if recognise else as_mask
    if attn_mask is not None:
        if attn_mask.ndim == 3 and attn_mask.shape[0] == batch * heads:
            attn_mask = attn_mask.unflatten(0, (batch, heads))
        elif attn_mask.ndim != 2:
            raise BadInputError(
                "expected attn_mask of shape (queries, keys) or "
                f"({batch * heads}, queries, keys), got {tuple(attn_mask.shape)}",
                hint="the leading dimension is batch times heads",
            )
        found &= made(~attn_mask if attn_mask.dtype == torch.bool else attn_mask)
    if key_padding_mask is not None:
        rows = key_padding_mask.unsqueeze(0) if key_padding_mask.ndim == 1 else key_padding_mask
        if rows.ndim != 2 or rows.shape[0] != batch:
            raise BadInputError(
                f"expected key_padding_mask of shape ({batch}, keys), got "
                f"{tuple(key_padding_mask.shape)}",
                hint="pass one row per sequence, True for padding",
            )
        found &= Padding(~rows) if rows.dtype == torch.bool else made(rows[:, None, None, :])
    return found


def recognised_mask(mask: Tensor) -> Mask:
    """Return the rule that a mask tensor follows, such as causal, or the tensor itself.

    Args:
        mask: Booleans (True allows) or floats that are added, (..., queries, keys).

    Returns:
        Rules that allow exactly the same entries, so that a model's causal mask is named
        "causal"; ``Allowed`` or ``Additive`` if no rule does.
    """
    allowed = mask
    if mask.is_floating_point():
        allowed = mask > torch.finfo(mask.dtype).min
        if bool((allowed & (mask != 0)).any()):
            return Additive(mask)
    if allowed.ndim == 4 and allowed.shape[1] != 1:
        if bool((allowed != allowed[:, :1]).any()):
            return Allowed(allowed)
        allowed = allowed[:, :1]
    real = _real_keys(allowed)
    padding = EVERYTHING if bool(real.all()) else Padding(real)
    grid = Grid.whole(allowed.shape, allowed.device)
    seen = allowed & torch.ones(1, 1, dtype=torch.bool, device=allowed.device)
    for rule in _rules(seen, grid):
        if bool((seen == (rule & padding).allowed(grid)).all()):
            return rule & padding
    return Allowed(allowed)


def _real_keys(allowed: Tensor) -> Tensor:
    """Return the keys that some query may attend to, without dimensions of size one."""
    real = allowed.any(-2)
    real = real.squeeze(1) if real.ndim == 3 else real
    return real.squeeze(0) if real.ndim == 2 and real.shape[0] == 1 else real


def _rules(allowed: Tensor, grid: Grid) -> list[Mask]:
    """Return the rules by position that could explain the mask, simplest first."""
    n, m = allowed.shape[-2:]
    causal = Causal(m - n) if m >= n else Causal()
    apart = (grid.column_index - grid.row_index).abs().expand(allowed.shape)
    window = SlidingWindow(int(apart[allowed].max()) + 1) if bool(allowed.any()) else EVERYTHING
    return [EVERYTHING, causal, causal & window, window]


def _named(name: str) -> Mask:
    kind, _, number = name.partition(":")
    if kind == "none":
        return EVERYTHING
    return Causal(int(number or 0)) if kind == "causal" else SlidingWindow(int(number))
