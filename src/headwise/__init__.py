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
    from headwise.papers.reproduce import Reproduction, list_exhibits, reproduce
    from headwise.probing import RankMonitor, Scan, capture, scan
    from headwise.progress import Progress
    from headwise.reduction import Reduction, load, reduce_model
    from headwise.spectra import Certificate, Estimate, Measurement, Relative, count, measure
    from headwise.theory import Bound, Law, Prediction, bound, expected_rank, law
    from headwise.trials import OwnTraining, Trial, trial, trial_of

__all__ = [
    "Advice",
    "Bound",
    "Certificate",
    "Estimate",
    "HeadGeometry",
    "HeadwiseError",
    "Law",
    "Measurement",
    "OwnTraining",
    "Prediction",
    "Progress",
    "RankMonitor",
    "Ranks",
    "Reduction",
    "Relative",
    "Reproduction",
    "Scan",
    "Trial",
    "__version__",
    "advise",
    "bound",
    "capture",
    "count",
    "expected_rank",
    "law",
    "list_exhibits",
    "load",
    "measure",
    "mha",
    "rank",
    "read_array",
    "reduce_model",
    "reproduce",
    "scan",
    "trial",
    "trial_of",
]

_HOME = {
    "Advice": "advice",
    "Bound": "theory",
    "Certificate": "spectra",
    "Estimate": "spectra",
    "HeadGeometry": "geometry",
    "HeadwiseError": "errors",
    "Law": "theory",
    "Measurement": "spectra",
    "OwnTraining": "trials",
    "Prediction": "theory",
    "Progress": "progress",
    "RankMonitor": "probing",
    "Ranks": "attention",
    "Reduction": "reduction",
    "Relative": "spectra",
    "Reproduction": "papers.reproduce",
    "Scan": "probing",
    "Trial": "trials",
    "advise": "advice",
    "bound": "theory",
    "capture": "probing",
    "count": "spectra",
    "expected_rank": "theory",
    "law": "theory",
    "list_exhibits": "papers.reproduce",
    "load": "reduction",
    "measure": "spectra",
    "mha": "attention",
    "rank": "attention",
    "read_array": "arrays",
    "reduce_model": "reduction",
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
