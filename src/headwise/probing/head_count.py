"""How many heads a scan will measure, for the time that is left."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import nn

from headwise.attention.layer import Attention

#: How configs name the number of decoder layers.
_DECODER = ("num_decoder_layers", "decoder_layers")


def head_count(
    model: nn.Module, layers: Collection[int | str] | None, heads: Collection[int] | None
) -> int:
    """Return how many heads a scan will measure, as far as the config or the layers tell.

    >>> head_count(nn.MultiheadAttention(8, 4), None, None)
    4
    """
    config = getattr(model, "config", None)
    parts = [getattr(config, name, None) for name in ("text_config", "vision_config")]
    found = [each for part in parts if part is not None for each in _of_config(part)]
    found = found or _of_config(config) or _of_layers(model)
    if not found:
        return 1
    chosen = found if layers is None else found[: len(set(layers))]
    return max(1, sum(each if heads is None else len(set(heads)) for each in chosen))


def _of_config(config: Any) -> list[int]:
    """Return the number of heads of each layer, or nothing if the config does not say."""
    depth = getattr(config, "num_hidden_layers", None)
    each = getattr(config, "num_attention_heads", None)
    if not isinstance(depth, int) or not isinstance(each, int):
        return []
    if getattr(config, "is_encoder_decoder", False):
        named = (getattr(config, name, None) for name in _DECODER)
        decoder = next((value for value in named if isinstance(value, int)), depth)
        depth += 2 * decoder  # self-attention and cross-attention
    return [each] * depth


def _of_layers(model: nn.Module) -> list[int]:
    found: list[int] = []
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            found.append(module.num_heads)
        elif isinstance(module, Attention):
            found.append(module.geometry.heads)
    return found
