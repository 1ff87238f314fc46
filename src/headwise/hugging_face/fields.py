"""Write a head geometry as the fields of a Hugging Face config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry


@dataclass(frozen=True)
class ModelSizes:
    """What a config needs besides the geometry of its heads."""

    depth: int
    mlp_width: int
    vocabulary: int
    context: int


def config_fields(geometry: HeadGeometry, sizes: ModelSizes) -> dict[str, Any]:
    """Return the fields of Qwen3 and Mistral, or of DeepSeek-V3 for latent attention."""
    own = (
        _latent(geometry, sizes.depth) if isinstance(geometry, LatentGeometry) else _free(geometry)
    )
    return {
        **_shared(geometry, sizes),
        "num_key_value_heads": geometry.kv_heads,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.context,
        **own,
    }


def encoder_fields(geometry: HeadGeometry, sizes: ModelSizes, family: str) -> dict[str, Any]:
    """Return the fields of BERT or ViT, whose head_dim is width / heads."""
    fields = _shared(geometry, sizes)
    if family == "bert":
        fields |= {"vocab_size": sizes.vocabulary, "max_position_embeddings": sizes.context}
    return fields


def one_even_rank(geometry: HeadGeometry) -> bool:
    """Whether queries, keys and values share one even head dimension, as rotary positions need."""
    return geometry.qk_rank == geometry.v_rank and geometry.qk_rank % 2 == 0


def is_standard(geometry: HeadGeometry) -> bool:
    """Whether this is plain multi-head attention with head_dim = width / heads."""
    return (
        not isinstance(geometry, LatentGeometry)
        and geometry.kv_heads == geometry.heads
        and geometry.heads * geometry.qk_rank == geometry.width
        and geometry.v_rank == geometry.qk_rank
    )


def _shared(geometry: HeadGeometry, sizes: ModelSizes) -> dict[str, Any]:
    return {
        "hidden_size": geometry.width,
        "num_attention_heads": geometry.heads,
        "num_hidden_layers": sizes.depth,
        "intermediate_size": sizes.mlp_width,
    }


def _free(geometry: HeadGeometry) -> dict[str, Any]:
    if not one_even_rank(geometry):
        even = max(2, geometry.qk_rank - geometry.qk_rank % 2)
        nearest = HeadGeometry(geometry.width, geometry.heads, geometry.kv_heads, even, even)
        raise BadInputError(
            f"no Hugging Face family takes qk_rank {geometry.qk_rank} with v_rank "
            f"{geometry.v_rank} (rotary positions need one even head dimension for both)",
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
        # Every layer dense: the geometry does not describe experts.
        "first_k_dense_replace": depth,
    }
