"""Models with attention layers of any rank and any number of heads."""

from headwise.models.classifiers import (
    Images,
    TextClassifier,
    VectorClassifier,
    ViTClassifier,
)
from headwise.models.decoder import Decoder
from headwise.models.incontext import InContextRegressor
from headwise.models.neighbours import NeighbourEncoder, NeighbourShape
from headwise.models.norms import UnitNorm
from headwise.models.pairs import CrossLayer, CrossShape
from headwise.models.transformer import EncoderStack, Style, parameter_counts

__all__ = [
    "CrossLayer",
    "CrossShape",
    "Decoder",
    "EncoderStack",
    "Images",
    "InContextRegressor",
    "NeighbourEncoder",
    "NeighbourShape",
    "Style",
    "TextClassifier",
    "UnitNorm",
    "VectorClassifier",
    "ViTClassifier",
    "parameter_counts",
]
