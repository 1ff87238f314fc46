"""Read any model, and measure the rank of its attention layers."""

from headwise.probing.checkpoints import Inputs, scan_checkpoint
from headwise.probing.heat_map import short_names
from headwise.probing.monitor import CollapseWarning, LayerRank, RankMonitor
from headwise.probing.page import write_report
from headwise.probing.reading import Keep, attention_layers, capture, views
from headwise.probing.rows import HeadRow, Scan, mean_of
from headwise.probing.scanning import scan
from headwise.probing.summary import Summary, as_json, described, sentences, summary

__all__ = [
    "CollapseWarning",
    "HeadRow",
    "Inputs",
    "Keep",
    "LayerRank",
    "RankMonitor",
    "Scan",
    "Summary",
    "as_json",
    "attention_layers",
    "capture",
    "described",
    "mean_of",
    "scan",
    "scan_checkpoint",
    "sentences",
    "short_names",
    "summary",
    "views",
    "write_report",
]
