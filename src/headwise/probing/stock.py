"""torch.nn.MultiheadAttention read like a layer of our own: queries, keys, mask, temperature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.capture import Receiver
from headwise.attention.masks import EVERYTHING, Additive, Allowed, Mask
from headwise.attention.view import AttentionView


def stock_layers(model: nn.Module) -> dict[str, nn.MultiheadAttention]:
    """The ``nn.MultiheadAttention`` layers of a model by name.

    >>> list(stock_layers(nn.TransformerEncoderLayer(8, 2, batch_first=True)))
    ['self_attn']
    """
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)}


@contextmanager
def capture_stock(model: nn.Module, receive: Receiver) -> Iterator[None]:
    """Call ``receive(name, view)`` for each ``nn.MultiheadAttention`` while the block runs.

    Hooks switch torch's fused encoder path off, so that every layer is seen.

    >>> layer = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.zeros(1, 4, 8)
    >>> with capture_stock(layer, lambda name, view: print(tuple(view.queries.shape))):
    ...     _ = layer(x, x, x)
    (1, 2, 4, 4)
    """
    hooks = [
        layer.register_forward_pre_hook(_hook(receive, name), with_kwargs=True)
        for name, layer in stock_layers(model).items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _hook(receive: Receiver, name: str) -> Callable[..., None]:
    def seen(layer: nn.MultiheadAttention, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        inputs = dict(zip(("query", "key", "value"), given, strict=False)) | named
        receive(name, _view(layer, inputs))

    return seen


def _view(layer: nn.MultiheadAttention, inputs: dict[str, Any]) -> AttentionView:
    query, key = (_batched(layer, inputs[name]) for name in ("query", "key"))
    weights = layer.in_proj_weight
    if weights is None:
        to_query, to_key = layer.q_proj_weight, layer.k_proj_weight
    else:
        to_query, to_key, _ = weights.chunk(3)
    bias = layer.in_proj_bias
    biases = (None, None) if bias is None else bias.chunk(3)[:2]
    queries = nn.functional.linear(query, to_query, biases[0])
    keys = nn.functional.linear(key, to_key, biases[1])
    return AttentionView(
        queries=_by_head(queries, layer.num_heads),
        keys=_by_head(keys, layer.num_heads),
        mask=_mask(inputs, queries.shape[0], layer.num_heads),
        temperature=layer.head_dim**0.5,
        weights=None,
        turned_rank=0,
    )


def _batched(layer: nn.MultiheadAttention, tokens: Tensor) -> Tensor:
    tokens = tokens.detach()
    if tokens.ndim == 2:
        return tokens.unsqueeze(0)
    return tokens if layer.batch_first else tokens.transpose(0, 1)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2).detach()


def _mask(inputs: dict[str, Any], batch: int, heads: int) -> Mask:
    """The two masks that the layer takes, as one; where they are boolean, true forbids."""
    attention, padding = inputs.get("attn_mask"), inputs.get("key_padding_mask")
    found: Mask = EVERYTHING
    if attention is not None:
        shape = (batch, heads, *attention.shape[-2:])
        found &= _one(attention if attention.ndim == 2 else attention.reshape(shape))
    if padding is not None:
        found &= _one(padding.reshape(batch, 1, 1, -1))
    return found


def _one(mask: Tensor) -> Mask:
    return Allowed(~mask) if mask.dtype == torch.bool else Additive(mask)
