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
    from headwise.attention import Ranks, mha, rank
    from headwise.errors import HeadwiseError
    from headwise.geometry import HeadGeometry
    from headwise.papers.reproduce import Reproduction, reproduce
    from headwise.probing import RankMonitor, Scan, capture, scan
    from headwise.progress import Progress
    from headwise.spectra import Certificate, Estimate, Measurement, Relative, count, measure
    from headwise.theory import (
        critical_head_dim,
        error_lower_bound,
        finite_law,
        heads_needed,
        predict_ratio,
    )
    from headwise.trials import OwnTraining, Trial, trial, trial_of

__all__ = [
    "Advice",
    "Certificate",
    "Estimate",
    "HeadGeometry",
    "HeadwiseError",
    "Measurement",
    "OwnTraining",
    "Progress",
    "RankMonitor",
    "Ranks",
    "Relative",
    "Reproduction",
    "Scan",
    "Trial",
    "__version__",
    "advise",
    "capture",
    "count",
    "critical_head_dim",
    "error_lower_bound",
    "finite_law",
    "heads_needed",
    "measure",
    "mha",
    "predict_ratio",
    "rank",
    "read_array",
    "reproduce",
    "scan",
    "trial",
    "trial_of",
]

_HOME = {
    "Advice": "advice",
    "Certificate": "spectra",
    "Estimate": "spectra",
    "HeadGeometry": "geometry",
    "HeadwiseError": "errors",
    "Measurement": "spectra",
    "OwnTraining": "trials",
    "Progress": "progress",
    "RankMonitor": "probing",
    "Ranks": "attention",
    "Relative": "spectra",
    "Reproduction": "papers.reproduce",
    "Scan": "probing",
    "Trial": "trials",
    "advise": "advice",
    "capture": "probing",
    "count": "spectra",
    "critical_head_dim": "theory",
    "error_lower_bound": "theory",
    "finite_law": "theory",
    "heads_needed": "theory",
    "measure": "spectra",
    "mha": "attention",
    "predict_ratio": "theory",
    "rank": "attention",
    "read_array": "arrays",
    "reproduce": "papers.reproduce",
    "scan": "probing",
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
