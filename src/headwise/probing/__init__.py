"""Layers looked at while they work: ranks during training."""

from headwise.probing.monitor import CollapseWarning, LayerRank, RankMonitor

__all__ = ["CollapseWarning", "LayerRank", "RankMonitor"]
