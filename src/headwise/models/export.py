"""A Hugging Face configuration of a family that allows the geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwise.attention import HeadGeometry, LatentGeometry
from headwise.config_fields import ModelSizes, config_fields
from headwise.errors import needs_extra

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
    sizes = ModelSizes(depth, mlp_width, vocabulary, context)
    fields = config_fields(geometry, sizes)
    latent = isinstance(geometry, LatentGeometry)
    return (transformers.DeepseekV3Config if latent else transformers.Qwen3Config)(**fields)
