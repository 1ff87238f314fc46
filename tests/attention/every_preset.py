"""One small layer of every preset."""

import torch
from torch import nn

from headwise.attention import (
    HeadGeometry,
    LatentGeometry,
    Rotary,
    generalized,
    gqa,
    mha,
    mla,
    mqa,
)


class BilinearMap(nn.Module):
    """φ(K_hᵀX, y) = softmax of y's first coordinates against the keys."""

    def forward(self, keys, y):
        queries = y[..., : keys.shape[-1]].unsqueeze(1)
        return torch.softmax(queries @ keys.mT, dim=-1)


LATENT = LatentGeometry(16, 4, 4, 10, 6, kv_latent=12, q_latent=8, rope_rank=4)
PRESETS = {
    "mha": lambda: mha(HeadGeometry.standard(16, 4), "all"),
    "rank one": lambda: mha(HeadGeometry.free(16, 32, 1), "all"),
    "gqa": lambda: gqa(HeadGeometry.standard(16, 4).grouped(2), position=Rotary(4)),
    "mqa": lambda: mqa(HeadGeometry.free(16, 4, 3)),
    "mla": lambda: mla(LATENT),
    "generalized": lambda: generalized(HeadGeometry.free(16, 4, 3), BilinearMap()),
}
