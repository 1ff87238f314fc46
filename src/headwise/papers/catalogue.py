"""Every exhibit by name. Nothing of an exhibit is imported before it is used.

To add one, write ``papers/<folder>/<file>.py`` with an ``Exhibit`` named ``<FILE>`` in capitals,
and a line in ``catalogue.csv``: name, title and scales, and ``within`` if exhibits share a module.
The scales stand in both places, so that listing them needs no import; a test holds them equal.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.errors import ParameterError

if TYPE_CHECKING:
    from headwise.papers.exhibit import Exhibit

#: Where the package has its recorded rows.
RECORDS = Path(__file__).parent / "records"

#: One line for each exhibit.
LISTED = Path(__file__).with_name("catalogue.csv")


def record_path(name: str, scale: str) -> Path:
    """Return the file in which the package has an exhibit's rows at a scale."""
    return RECORDS / f"{name}_{scale}.csv"


@dataclass(frozen=True)
class Entry:
    """An exhibit that is not loaded yet: its name, title and scales."""

    name: str
    title: str
    scales: tuple[str, ...]
    within: str

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
        """Import the exhibit, and give it its name and title."""
        module = import_module(f"headwise.papers.{self.module.replace('/', '.')}")
        exhibit = getattr(module, self.name.rpartition("/")[2].upper())
        return replace(exhibit, name=self.name, title=self.title)


ENTRIES = tuple(
    Entry(row["name"], row["title"], tuple(row["scales"].split()), row["within"])
    for row in csv.DictReader(LISTED.read_text(encoding="utf-8").splitlines())
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
