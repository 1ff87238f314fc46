"""Everything that reads or writes configs and models of the transformers library."""

from headwise.hugging_face.config import ModelConfig, read_config
from headwise.hugging_face.to_config import to_hf_config

__all__ = ["ModelConfig", "read_config", "to_hf_config"]
