"""Read any model, and watch the rank of its attention layers."""

from headwise.probing.monitor import CollapseWarning, LayerRank, RankMonitor
from headwise.probing.reading import Keep, attention_layers, capture, views

__all__ = [
    "CollapseWarning",
    "Keep",
    "LayerRank",
    "RankMonitor",
    "attention_layers",
    "capture",
    "views",
]
