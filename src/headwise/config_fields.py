"""A head geometry in the fields of Hugging Face configurations, and what they cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry


@dataclass(frozen=True)
class ModelSizes:
    """What a configuration needs beside the geometry of its heads.

    >>> ModelSizes(depth=2, mlp_width=128, vocabulary=100, context=32).depth
    2
    """

    depth: int
    mlp_width: int
    vocabulary: int
    context: int


def config_fields(geometry: HeadGeometry, sizes: ModelSizes) -> dict[str, Any]:
    """The fields of Qwen3 and Mistral (free heads), or of DeepSeek-V3 (latent ones).

    A geometry that no family can express is refused with the nearest one.

    >>> sizes = ModelSizes(depth=2, mlp_width=128, vocabulary=100, context=32)
    >>> config_fields(HeadGeometry.free(64, heads=6, rank=24), sizes)["head_dim"]
    24
    """
    latent = isinstance(geometry, LatentGeometry)
    own = _latent(geometry, sizes.depth) if latent else _free(geometry)
    return {
        "hidden_size": geometry.width,
        "num_attention_heads": geometry.heads,
        "num_key_value_heads": geometry.kv_heads,
        "num_hidden_layers": sizes.depth,
        "intermediate_size": sizes.mlp_width,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.context,
    } | own


def one_even_rank(geometry: HeadGeometry) -> bool:
    """Whether one even head dimension serves queries, keys and values, as rotary ones ask.

    >>> one_even_rank(HeadGeometry(24, 4, 2, 6, 5))
    False
    """
    return geometry.qk_rank == geometry.v_rank and geometry.qk_rank % 2 == 0


def _free(geometry: HeadGeometry) -> dict[str, Any]:
    if not one_even_rank(geometry):
        even = max(2, geometry.qk_rank - geometry.qk_rank % 2)
        nearest = HeadGeometry(geometry.width, geometry.heads, geometry.kv_heads, even, even)
        raise BadInputError(
            f"no Hugging Face family takes qk_rank {geometry.qk_rank} with v_rank "
            f"{geometry.v_rank} (one even head dimension serves both, for rotary positions)",
            hint=f"the nearest is Qwen3 with {nearest}",
        )
    return {"head_dim": geometry.qk_rank}


def _latent(geometry: LatentGeometry, depth: int) -> dict[str, Any]:
    if geometry.rope_rank == 0:
        raise BadInputError(
            "no Hugging Face family has latent attention without a rotary part (rope_rank 0)",
            hint=f"the nearest is DeepSeek-V3 with rope_rank=2 and qk_rank={geometry.qk_rank + 2}",
        )
    return {
        "qk_nope_head_dim": geometry.content_rank,
        "qk_rope_head_dim": geometry.rope_rank,
        "v_head_dim": geometry.v_rank,
        "kv_lora_rank": geometry.kv_latent,
        "q_lora_rank": geometry.q_latent,
        # Every layer dense: the geometry says nothing of experts.
        "first_k_dense_replace": depth,
    }
