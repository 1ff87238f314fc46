"""A Hugging Face configuration of a family that allows the geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.attention import HeadGeometry, LatentGeometry
from headwise.errors import BadInputError, needs_extra

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def to_hf_config(
    geometry: HeadGeometry, *, depth: int, mlp_width: int, vocabulary: int, context: int
) -> PretrainedConfig:
    """A Qwen3 (free head dimension, grouped heads) or DeepSeek-V3 (latent) configuration.

    Save it with ``config.save_pretrained(folder)``; ``AutoModelForCausalLM.from_config`` makes
    the model. A geometry that neither family can express is refused with the nearest one.

    >>> geometry = HeadGeometry.free(64, heads=6, rank=24).grouped(3)
    >>> config = to_hf_config(geometry, depth=2, mlp_width=128, vocabulary=100, context=32)
    >>> config.model_type, config.head_dim, config.num_key_value_heads
    ('qwen3', 24, 3)
    """
    try:
        import transformers
    except ImportError:
        raise needs_extra("transformers", "hub") from None
    shared: dict[str, Any] = {
        "hidden_size": geometry.width,
        "num_attention_heads": geometry.heads,
        "num_key_value_heads": geometry.kv_heads,
        "num_hidden_layers": depth,
        "intermediate_size": mlp_width,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
    }
    if isinstance(geometry, LatentGeometry):
        return transformers.DeepseekV3Config(**shared, **_latent(geometry, depth))
    return transformers.Qwen3Config(**shared, **_free(geometry))


def _free(geometry: HeadGeometry) -> dict[str, Any]:
    even = max(2, geometry.qk_rank - geometry.qk_rank % 2)
    if geometry.qk_rank != geometry.v_rank or geometry.qk_rank != even:
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
