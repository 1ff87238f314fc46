"""Models made of attention layers whose rank and head count are free."""

from headwise.models.classifiers import Images, TextClassifier, ViTClassifier
from headwise.models.export import to_hf_config
from headwise.models.incontext import InContextRegressor
from headwise.models.norms import UnitNorm
from headwise.models.transformer import EncoderStack, Style, parameter_counts

__all__ = [
    "EncoderStack",
    "Images",
    "InContextRegressor",
    "Style",
    "TextClassifier",
    "UnitNorm",
    "ViTClassifier",
    "parameter_counts",
    "to_hf_config",
]
