"""How many attention heads, of what rank, does this Transformer need on this data?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwise.version import __version__

# One name for each job. The types of results are in the packages that define them:
# `from headwise.advice import Advice`. Names load on first use (PEP 562), so that `import headwise`
# and `headwise --help` stay free of torch. A new name needs three lines: its import for type
# checkers, its place in __all__, and the module that defines it in _HOME; a test compares them.
if TYPE_CHECKING:
    from headwise.advice import advise
    from headwise.attention import mha, rank
    from headwise.errors import HeadwiseError
    from headwise.geometry import HeadGeometry
    from headwise.papers.reproduce import list_exhibits, reproduce
    from headwise.probing import RankMonitor, capture, scan
    from headwise.progress import Progress
    from headwise.reduction import load, reduce
    from headwise.spectra import Relative, measure
    from headwise.theory import bound, expected_rank, law
    from headwise.trials import trial, trial_of

__all__ = [
    "HeadGeometry",
    "HeadwiseError",
    "Progress",
    "RankMonitor",
    "Relative",
    "__version__",
    "advise",
    "bound",
    "capture",
    "expected_rank",
    "law",
    "list_exhibits",
    "load",
    "measure",
    "mha",
    "rank",
    "reduce",
    "reproduce",
    "scan",
    "trial",
    "trial_of",
]

_HOME = {
    "HeadGeometry": "geometry",
    "HeadwiseError": "errors",
    "Progress": "progress",
    "RankMonitor": "probing",
    "Relative": "spectra",
    "advise": "advice",
    "bound": "theory",
    "capture": "probing",
    "expected_rank": "theory",
    "law": "theory",
    "list_exhibits": "papers.reproduce",
    "load": "reduction",
    "measure": "spectra",
    "mha": "attention",
    "rank": "attention",
    "reduce": "reduction",
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
