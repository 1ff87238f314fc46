"""Every exhibit by name. Nothing of an exhibit is imported before it is used.

To add one, write ``papers/<folder>/<file>.py`` with an ``Exhibit`` named ``<FILE>`` in capitals,
and a line below. Exhibits that share a module name it in ``within``. The title and the scales stand
in both places, so that listing them needs no import; a test holds them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.errors import ParameterError

if TYPE_CHECKING:
    from headwise.papers.exhibit import Exhibit

#: Where the package has its recorded rows.
RECORDS = Path(__file__).parent / "records"

#: Sets of scales that exhibits offer.
PRINTED = ("miniature", "paper")
COMPUTED = ("miniature", "laptop", "paper")
TRAINED = ("miniature", "laptop", "gpu", "paper")
OURS = ("miniature", "laptop")
SIMULATED = ("miniature", "laptop", "gpu")


def record_path(name: str, scale: str) -> Path:
    """Return the file in which the package has an exhibit's rows at a scale."""
    return RECORDS / f"{name}_{scale}.csv"


@dataclass(frozen=True)
class Entry:
    """An exhibit that is not loaded yet: its name, title and scales."""

    name: str
    title: str
    scales: tuple[str, ...]
    within: str = ""

    @property
    def recorded(self) -> tuple[str, ...]:
        """Return the scales whose rows come with the package."""
        return tuple(scale for scale in self.scales if record_path(self.name, scale).is_file())

    @property
    def module(self) -> str:
        """Return where it is defined, as a path within ``papers``."""
        folder, _, file = self.name.partition("/")
        return f"{folder}/{self.within or file}"

    def load(self) -> Exhibit:
        """Import the exhibit."""
        module = import_module(f"headwise.papers.{self.module.replace('/', '.')}")
        return getattr(module, self.name.rpartition("/")[2].upper())


ENTRIES = (
    Entry("rank2026/figure_1", "Figure 1: rank against the head dimension", PRINTED),
    Entry(
        "rank2026/table_1",
        "Table 1, Figure 2a: rank against head dimension for four lengths",
        PRINTED,
    ),
    Entry(
        "rank2026/table_2",
        "Table 2: rank against the head dimension for four input distributions",
        PRINTED,
    ),
    Entry(
        "rank2026/figure_2b",
        "Figure 2b: rank against the head dimension on real images",
        COMPUTED,
    ),
    Entry(
        "rank2026/figure_2c",
        "Figure 2c: rank against the head dimension on mixed inputs",
        PRINTED,
    ),
    Entry(
        "rank2026/figure_3a",
        "Figures 3a and 3b: accuracy and rank on IMDB against the head dimension",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_3c",
        "Figure 3c: rank on IMDB in the first layer, for four widths",
        COMPUTED,
        within="imdb_layers",
    ),
    Entry(
        "rank2026/figure_3d",
        "Figure 3d: rank on IMDB in the second layer, for four widths",
        COMPUTED,
        within="imdb_layers",
    ),
    Entry(
        "rank2026/figure_4",
        "Figure 4: accuracy and rank on CIFAR-10, the width fixed",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_5a",
        "Figure 5a: rank against the head dimension for four widths",
        PRINTED,
    ),
    Entry(
        "rank2026/figure_5b",
        "Figure 5b: rank against the head dimension for four temperatures",
        PRINTED,
    ),
    Entry("rank2026/figure_5c", "Figure 5c: rank in every layer of a stack of eight", PRINTED),
    Entry(
        "rank2026/figure_6",
        "Figure 6: distance from orthonormal, Gaussian vectors and images",
        PRINTED,
    ),
    Entry(
        "rank2026/figure_7",
        "Figure 7: accuracy on CIFAR-10 by epoch, for two widths and five numbers of heads",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_8",
        "Figure 8: accuracy on CIFAR-100 by epoch, for two widths and five numbers of heads",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_9",
        "Figure 9: accuracy on SVHN by epoch, for two widths and five numbers of heads",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/table_3",
        "Table 3: final accuracy for two widths and five numbers of heads",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_10",
        "Figure 10: accuracy and rank on CIFAR-10 against the head dimension, 8 heads",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_11",
        "Figure 11: accuracy on CIFAR-10 by epoch, for 4 and 8 heads of five dimensions",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_12",
        "Figure 12: accuracy on CIFAR-100 by epoch, for 4 and 8 heads of five dimensions",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/figure_13",
        "Figure 13: accuracy on SVHN by epoch, for 4 and 8 heads of five dimensions",
        TRAINED,
        within="trained_figures",
    ),
    Entry(
        "rank2026/theorem_1", "Theorems 1 and 2: the bound on rank, and what leads to it", PRINTED
    ),
    Entry(
        "heads2024/figure_rank_depth",
        "Error against rank, by number of parameters and depth",
        TRAINED,
    ),
    Entry(
        "heads2024/figure_what_it_learns",
        "What one layer learns: angle and size of its query-key forms",
        TRAINED,
    ),
    Entry(
        "heads2024/figure_saturation",
        "Where the two papers disagree: saturation of rank, and the rank a task needs",
        TRAINED,
    ),
    Entry("heads2024/figure_positions", "Error against rank with learned positions", TRAINED),
    Entry(
        "heads2024/figure_role_of_n", "Error against rank for growing numbers of points", TRAINED
    ),
    Entry(
        "heads2024/figure_role_of_d", "Error against rank over width, for growing widths", TRAINED
    ),
    Entry(
        "heads2024/figure_large_n",
        "Two layers of fixed rank against growing numbers of points",
        TRAINED,
    ),
    Entry(
        "heads2024/figure_in_context",
        "In-context linear regression against the number of heads",
        TRAINED,
    ),
    Entry(
        "heads2024/figure_lower_bound",
        "Lower bound on the error of low-rank heads, and what heads reach",
        TRAINED,
    ),
    Entry("heads2024/figure_majority_vote", "Majority vote of random rank-one heads", COMPUTED),
    Entry(
        "heads2024/figure_construction",
        "Constructions: exact full-rank head, rank-one tally, two-layer vote",
        COMPUTED,
    ),
    Entry(
        "heads2024/table_models", "Survey: rank and number of heads of well known models", PRINTED
    ),
    Entry("beyond/finite_law", "The finite law: rank of a random head at any length", SIMULATED),
    Entry(
        "beyond/log_squared",
        "Head dimension against length: (log n)² for a share, log n for a gain",
        SIMULATED,
    ),
    Entry("beyond/float32_trap", "The float32 trap: one rank, many answers", OURS),
    Entry("beyond/uncentred_inputs", "Uncentred inputs: a mean that all tokens share", OURS),
    Entry("beyond/init_scale", "The scale of initialisation: where the barrier lives", OURS),
)


def entries(names: Sequence[str]) -> list[Entry]:
    """Return the entries of these names, each once, in the order of the names.

    Args:
        names: Names of exhibits; a folder stands for all that are in it, "all" for every one.

    Returns:
        The entries, not loaded yet.

    Raises:
        ParameterError: If a name is unknown; the error suggests similar ones.

    >>> [entry.name for entry in entries(["rank2026/table_1"])]
    ['rank2026/table_1']
    >>> entries(["rank2026/tabel_1"])
    Traceback (most recent call last):
    ...
    headwise.errors.ParameterError: there is no exhibit 'rank2026/tabel_1'; did you mean ...
    """
    found: dict[str, Entry] = {}
    for name in names:
        matching = [e for e in ENTRIES if name in ("all", e.name, e.name.partition("/")[0])]
        if not matching:
            raise ParameterError(f"there is no exhibit {name!r}", hint=_nearest(name))
        found |= {entry.name: entry for entry in matching}
    return list(found.values())


def chosen(names: Sequence[str]) -> list[Exhibit]:
    """Load the exhibits of these names; see ``entries``."""
    return [entry.load() for entry in entries(names)]


def __getattr__(name: str) -> Any:
    """Load every exhibit when ``CATALOGUE`` is read."""
    if name == "CATALOGUE":
        return tuple(entry.load() for entry in ENTRIES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _nearest(name: str) -> str:
    known = [entry.name for entry in ENTRIES]
    # People may leave out the folder, so the last part is compared too.
    short = {known_name.rpartition("/")[2]: known_name for known_name in known}
    close = get_close_matches(name, known, n=3) or [
        short[match] for match in get_close_matches(name.rpartition("/")[2], short, n=3)
    ]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "`list_exhibits` lists them all"
