"""Attention layers, and the matrices they make."""

from headwise.attention.geometry import HeadGeometry, LatentGeometry
from headwise.attention.masks import (
    EVERYTHING,
    Additive,
    Allowed,
    Causal,
    Everything,
    Mask,
    Padding,
    SlidingWindow,
)
from headwise.attention.operator import AttentionOperator, hardmax_rank, streaming_argmax
from headwise.attention.scores import (
    default_temperature,
    hardmax_matrix,
    logits,
    softmax_matrix,
)

__all__ = [
    "EVERYTHING",
    "Additive",
    "Allowed",
    "AttentionOperator",
    "Causal",
    "Everything",
    "HeadGeometry",
    "LatentGeometry",
    "Mask",
    "Padding",
    "SlidingWindow",
    "default_temperature",
    "hardmax_matrix",
    "hardmax_rank",
    "logits",
    "softmax_matrix",
    "streaming_argmax",
]
