"""Weights carried from stock layers to ours, for tests of equality."""

import torch
from torch import nn

from headwise.attention import HeadGeometry, mha


def random_(module, seed=0):
    """Draw every parameter again, so that no zero bias hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(drawn / max(1, parameter.shape[-1]) ** 0.5)
    return module


def stock(width, heads, seed=0, **options):
    layer = nn.MultiheadAttention(width, heads, batch_first=True, dtype=torch.float64, **options)
    return random_(layer, seed)


def ours_from_stock(layer, **options):
    """Our layer with the weights of a ``torch.nn.MultiheadAttention``."""
    biased = layer.in_proj_bias is not None
    geometry = HeadGeometry.standard(layer.embed_dim, layer.num_heads)
    copy = mha(geometry, "all" if biased else "none", **options).double()
    maps = (copy.projection.query, copy.projection.key, copy.projection.value)
    with torch.no_grad():
        for linear, weight in zip(maps, layer.in_proj_weight.chunk(3), strict=True):
            linear.weight.copy_(weight)
        copy.projection.output.weight.copy_(layer.out_proj.weight)
        if biased:
            for linear, bias in zip(maps, layer.in_proj_bias.chunk(3), strict=True):
                linear.bias.copy_(bias)
            copy.projection.output.bias.copy_(layer.out_proj.bias)
    return copy


def tokens(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


#: Largest difference that float64 rounding of sums of this size explains.
ROUNDING = 1e-13


def close(found, wanted, limit=ROUNDING):
    scale = max(1.0, float(wanted.detach().abs().max()))
    torch.testing.assert_close(found, wanted, rtol=0, atol=limit * scale)
