"""Turn a head geometry into a ``transformers`` config object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwise.errors import needs_extra
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face.fields import ModelSizes, config_fields

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def to_hf_config(
    geometry: HeadGeometry, *, depth: int, mlp_width: int, vocabulary: int, context: int
) -> PretrainedConfig:
    """Make a Qwen3 config (free head dimension, grouped heads) or a DeepSeek-V3 one (latent).

    Save it with ``config.save_pretrained(folder)``, or build the model with
    ``AutoModelForCausalLM.from_config(config)``.

    Args:
        geometry: Heads and ranks of every attention layer.
        depth: Number of layers.
        mlp_width: Width of the hidden layer of each MLP.
        vocabulary: Number of token ids.
        context: Longest sequence in tokens.

    Returns:
        A ``Qwen3Config``, or a ``DeepseekV3Config`` for a ``LatentGeometry``.

    Raises:
        BadInputError: Neither family can express the geometry; the message names the nearest.
        MissingExtraError: ``transformers`` is not installed.

    >>> geometry = HeadGeometry.free(64, heads=6, rank=24).grouped(3)
    >>> config = to_hf_config(geometry, depth=2, mlp_width=128, vocabulary=100, context=32)
    >>> config.model_type, config.head_dim, config.num_key_value_heads
    ('qwen3', 24, 3)
    """  # noqa: DOC501
    try:
        import transformers
    except ImportError:
        raise needs_extra("transformers", "hub") from None
    fields = config_fields(geometry, ModelSizes(depth, mlp_width, vocabulary, context))
    latent = isinstance(geometry, LatentGeometry)
    return (transformers.DeepseekV3Config if latent else transformers.Qwen3Config)(**fields)
