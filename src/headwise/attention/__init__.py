"""Attention layers, and the matrices they make."""

from headwise.attention.initialisation import (
    FanIn,
    Initialisation,
    Stock,
    UnitGaussian,
    gaussian_heads,
)
from headwise.attention.layer import Attention, HeadMean, HeadSum
from headwise.attention.mask_arguments import MaskLike, as_mask
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
from headwise.attention.positions import (
    LearnedAdditive,
    LearnedConcatenated,
    NoPosition,
    PositionRule,
    Rotary,
)
from headwise.attention.presets import fitting, generalized, gqa, mha, mla, mqa
from headwise.attention.projections import (
    FullProjection,
    GroupedProjection,
    HeadWeights,
    KeyProjection,
    LatentProjection,
    Projection,
)
from headwise.attention.rank_comparison import RankComparison, compare_ranks
from headwise.attention.rank_results import MatrixRank, Ranks
from headwise.attention.ranking import rank
from headwise.attention.scores import (
    default_temperature,
    hardmax_matrix,
    logits,
    softmax_matrix,
)
from headwise.attention.view import AttentionMaps, AttentionView
from headwise.attention.weighting import (
    AnyMap,
    Hardmax,
    Softmax,
    StraightThroughHardmax,
    Weighting,
)
from headwise.geometry import HeadGeometry, LatentGeometry

__all__ = [
    "EVERYTHING",
    "Additive",
    "Allowed",
    "AnyMap",
    "Attention",
    "AttentionMaps",
    "AttentionOperator",
    "AttentionView",
    "Causal",
    "Everything",
    "FanIn",
    "FullProjection",
    "GroupedProjection",
    "Hardmax",
    "HeadGeometry",
    "HeadMean",
    "HeadSum",
    "HeadWeights",
    "Initialisation",
    "KeyProjection",
    "LatentGeometry",
    "LatentProjection",
    "LearnedAdditive",
    "LearnedConcatenated",
    "Mask",
    "MaskLike",
    "MatrixRank",
    "NoPosition",
    "Padding",
    "PositionRule",
    "Projection",
    "RankComparison",
    "Ranks",
    "Rotary",
    "SlidingWindow",
    "Softmax",
    "Stock",
    "StraightThroughHardmax",
    "UnitGaussian",
    "Weighting",
    "as_mask",
    "compare_ranks",
    "default_temperature",
    "fitting",
    "gaussian_heads",
    "generalized",
    "gqa",
    "hardmax_matrix",
    "hardmax_rank",
    "logits",
    "mha",
    "mla",
    "mqa",
    "rank",
    "softmax_matrix",
    "streaming_argmax",
]
