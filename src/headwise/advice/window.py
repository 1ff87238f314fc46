"""What is said of a model whose tokens look back no farther than a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwise.advice.evidence import Evidence

#: How newer configs name, for each layer, that it has the window.
SLIDING = "sliding_attention"


def window_finding(part: Mapping[str, Any], window: int | None, evidence: Evidence) -> list[str]:
    """Said where the window is shorter than the context that costs and the law are taken at."""
    layers = _layers(part)
    if window is None or layers is None or window >= evidence.context:
        return []
    taken = f"FLOPs are taken at the whole context, {evidence.context:,}"
    if evidence.statistics is None:
        taken = f"FLOPs and the law are taken at the whole context, {evidence.context:,}"
    return [
        f"Window: tokens look back {window:,} tokens at most{layers}. {taken}; for a layer with "
        f"the window ask again with a length of {window}."
    ]


def _layers(part: Mapping[str, Any]) -> str | None:
    """In which layers, where the config tells; None where it tells that there is none."""
    kinds = part.get("layer_types")
    if isinstance(kinds, list):
        count = kinds.count(SLIDING)
        return f" in {count} of {len(kinds)} layers" if count else None
    pattern = part.get("sliding_window_pattern")
    if isinstance(pattern, int) and pattern > 1:
        return f" in {pattern - 1} of every {pattern} layers"
    return ""
