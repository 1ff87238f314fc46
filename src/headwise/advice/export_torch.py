"""The advised attention layer as Python code, with the mask to call it with."""

from __future__ import annotations

from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face.family_layers import FamilyLayer
from headwise.hugging_face.fields import is_standard
from headwise.mask_names import MaskName

#: A layer of no family: biases as ``nn.MultiheadAttention`` has them, no rotary positions.
PLAIN = FamilyLayer("all")


def layer_call(
    geometry: HeadGeometry,
    layer: FamilyLayer | None = None,
    mask: MaskName = "none",
    window: int | None = None,
) -> str:
    """PyTorch's own layer where it is exactly the geometry, else headwise's."""
    layer = layer or PLAIN
    biases = layer.biases or "all"
    position = _position(geometry, layer)
    if is_standard(geometry) and position is None and biases != "qkv":
        return _of_pytorch(geometry, bias=biases == "all") + _pytorch_mask(geometry, mask)
    used = [type(geometry).__name__, "fitting"]
    used += ["Rotary"] if position else []
    called, names = _mask(mask, window)
    return (
        f"from headwise.attention import {', '.join(sorted(used + names, key=_order))}\n\n"
        f"geometry = {geometry}\n"
        f'layer = fitting(geometry, biases="{biases}"'
        f"{f', position={position}' if position else ''}){called}"
    )


def layer_remarks(family: str, layer: FamilyLayer) -> list[str]:
    """What the layer lacks that the model's own has, or may have."""
    found = []
    if layer.biases is None:
        found.append(
            f"the layer of {family} is not known: biases are those of nn.MultiheadAttention, "
            "positions those of the config; check both"
        )
    if layer.normed:
        found.append(f"{family} normalises queries and keys; this layer does not")
    if layer.scaled:
        found.append("the config scales rotary positions (rope_scaling); this layer does not")
    return found


def _order(name: str) -> tuple[bool, str]:
    """Classes first, as sorted imports have them."""
    return name[0].islower(), name


def _of_pytorch(geometry: HeadGeometry, *, bias: bool) -> str:
    return (
        "from torch import nn\n\n"
        f"layer = nn.MultiheadAttention(embed_dim={geometry.width}, "
        f"num_heads={geometry.heads}, {'' if bias else 'bias=False, '}batch_first=True)"
    )


def _pytorch_mask(geometry: HeadGeometry, mask: MaskName) -> str:
    if mask == "none":
        return ""
    return (
        f"\n# The mask is causal. For tokens x of shape (batch, n, {geometry.width}):\n"
        "# mask = nn.Transformer.generate_square_subsequent_mask(n)\n"
        "# y, _ = layer(x, x, x, attn_mask=mask, is_causal=True)"
    )


def _mask(mask: MaskName, window: int | None) -> tuple[str, list[str]]:
    """How to call headwise's layer under this mask, and what that imports."""
    if mask == "none":
        return "", []
    called = "\n# The mask is causal: y = layer(x, mask=Causal())"
    if window is None:
        return called, ["Causal"]
    limited = f"\n# In layers with the window: mask=Causal() & SlidingWindow({window})"
    return called + limited, ["Causal", "SlidingWindow"]


def _position(geometry: HeadGeometry, layer: FamilyLayer) -> str | None:
    """The rotary positions, on as many dimensions as turn; a latent layer has its own."""
    if layer.rotary is None:
        return None
    if isinstance(geometry, LatentGeometry):
        rank, pairs = geometry.rope_rank, ', pairs="adjacent"'
    else:
        rank, pairs = int(layer.turned * geometry.qk_rank) // 2 * 2, ""
    return f"Rotary({rank}, base={layer.rotary}{pairs})" if rank else None
