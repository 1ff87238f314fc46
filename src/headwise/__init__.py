"""How many attention heads, of what rank, does this Transformer need on this data?"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> module that defines it. Names load on first use (PEP 562), so importing
# headwise, and `headwise --help`, stay free of torch.
_HOME = {
    "Absolute": "spectra",
    "Advice": "advice",
    "Attention": "attention",
    "AttentionOperator": "attention",
    "AttentionView": "attention",
    "Budget": "advice",
    "Constraints": "advice",
    "Count": "spectra",
    "Counts": "spectra",
    "DtypeFloor": "spectra",
    "Estimate": "spectra",
    "HeadGeometry": "geometry",
    "HeadwiseError": "errors",
    "LatentGeometry": "geometry",
    "LogWeights": "spectra",
    "Measurement": "spectra",
    "Relative": "spectra",
    "Spectrum": "spectra",
    "RankMonitor": "probing",
    "Values": "theory",
    "advise": "advice",
    "barrier_ratio": "theory",
    "capture": "attention",
    "count": "spectra",
    "critical_head_dim": "theory",
    "error_lower_bound": "theory",
    "finite_law": "theory",
    "heads_needed": "theory",
    "measure": "spectra",
    "mha": "attention",
    "plateau_ratio": "theory",
    "predict_ratio": "theory",
    "read_array": "arrays",
    "softmax_ratio": "theory",
    "spectrum": "spectra",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headwise' has no attribute {name!r}")
    return getattr(import_module(f"headwise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
