"""Read any model, and watch the rank of its attention layers."""

from headwise.probing.monitor import CollapseWarning, LayerRank, RankMonitor
from headwise.probing.reading import Keep, attention_layers, capture, views
from headwise.probing.scanning import HeadRow, Scan, scan, scan_checkpoint

__all__ = [
    "CollapseWarning",
    "HeadRow",
    "Keep",
    "LayerRank",
    "RankMonitor",
    "Scan",
    "attention_layers",
    "capture",
    "scan",
    "scan_checkpoint",
    "views",
]
