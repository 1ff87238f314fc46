"""Read any model, and measure the rank of its attention layers."""

from headwise.probing.capturing import Keep, attention_layers, capture, views
from headwise.probing.checkpoints import scan
from headwise.probing.heat_map import short_names
from headwise.probing.monitor import CollapseWarning, LayerRank, RankMonitor
from headwise.probing.result import Scan
from headwise.probing.rows import LEGEND, HeadRow, mean_of
from headwise.probing.summary import Summary, described, sentences, summary

__all__ = [
    "LEGEND",
    "CollapseWarning",
    "HeadRow",
    "Keep",
    "LayerRank",
    "RankMonitor",
    "Scan",
    "Summary",
    "attention_layers",
    "capture",
    "described",
    "mean_of",
    "scan",
    "sentences",
    "short_names",
    "summary",
    "views",
]
