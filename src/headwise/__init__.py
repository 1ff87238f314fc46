"""How many attention heads, of what rank, does this Transformer need on this data?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwise.version import __version__

# Names load on first use (PEP 562), so that `import headwise` and `headwise --help` stay free of
# torch. A new name needs three lines: its import for type checkers, its place in __all__, and the
# module that defines it in _HOME. A test compares the three.
if TYPE_CHECKING:
    from headwise.advice import Advice, advise
    from headwise.arrays import read_array
    from headwise.attention import Attention, AttentionView, mha
    from headwise.errors import HeadwiseError
    from headwise.geometry import HeadGeometry, LatentGeometry
    from headwise.papers.reproduce import Reproduction, reproduce
    from headwise.probing import RankMonitor, Scan, capture, scan
    from headwise.progress import Progress
    from headwise.spectra import (
        Absolute,
        Certificate,
        Counts,
        DtypeFloor,
        Estimate,
        LogWeights,
        Measurement,
        Relative,
        Spectrum,
        count,
        measure,
        spectrum,
    )
    from headwise.theory import (
        Values,
        barrier_ratio,
        critical_head_dim,
        error_lower_bound,
        finite_law,
        heads_needed,
        plateau_ratio,
        predict_ratio,
        softmax_ratio,
    )
    from headwise.trials import OwnTraining, Trial, trial, trial_of

__all__ = [
    "Absolute",
    "Advice",
    "Attention",
    "AttentionView",
    "Certificate",
    "Counts",
    "DtypeFloor",
    "Estimate",
    "HeadGeometry",
    "HeadwiseError",
    "LatentGeometry",
    "LogWeights",
    "Measurement",
    "OwnTraining",
    "Progress",
    "RankMonitor",
    "Relative",
    "Reproduction",
    "Scan",
    "Spectrum",
    "Trial",
    "Values",
    "__version__",
    "advise",
    "barrier_ratio",
    "capture",
    "count",
    "critical_head_dim",
    "error_lower_bound",
    "finite_law",
    "heads_needed",
    "measure",
    "mha",
    "plateau_ratio",
    "predict_ratio",
    "read_array",
    "reproduce",
    "scan",
    "softmax_ratio",
    "spectrum",
    "trial",
    "trial_of",
]

_HOME = {
    "Absolute": "spectra",
    "Advice": "advice",
    "Attention": "attention",
    "AttentionView": "attention",
    "Certificate": "spectra",
    "Counts": "spectra",
    "DtypeFloor": "spectra",
    "Estimate": "spectra",
    "HeadGeometry": "geometry",
    "HeadwiseError": "errors",
    "LatentGeometry": "geometry",
    "LogWeights": "spectra",
    "Measurement": "spectra",
    "OwnTraining": "trials",
    "Progress": "progress",
    "RankMonitor": "probing",
    "Scan": "probing",
    "Relative": "spectra",
    "Reproduction": "papers.reproduce",
    "Spectrum": "spectra",
    "Trial": "trials",
    "Values": "theory",
    "advise": "advice",
    "barrier_ratio": "theory",
    "capture": "probing",
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
    "reproduce": "papers.reproduce",
    "scan": "probing",
    "softmax_ratio": "theory",
    "spectrum": "spectra",
    "trial": "trials",
    "trial_of": "trials",
}


if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'headwise' has no attribute {name!r}")
        return getattr(import_module(f"headwise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
