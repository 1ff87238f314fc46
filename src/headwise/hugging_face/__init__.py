"""Everything that reads or writes configs and models of the transformers library."""

from headwise.hugging_face.config import ModelConfig, read_config
from headwise.hugging_face.places import Source, find_source
from headwise.hugging_face.reducible import refuse_irreducible
from headwise.hugging_face.to_config import to_hf_config

__all__ = [
    "ModelConfig",
    "Source",
    "find_source",
    "read_config",
    "refuse_irreducible",
    "to_hf_config",
]
