"""Every exhibit there is, by hand; and how a name finds one."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from headwise.errors import BadInputError
from headwise.papers.exhibit import Exhibit
from headwise.papers.rank2026.table_1 import TABLE_1

CATALOGUE: tuple[Exhibit, ...] = (TABLE_1,)


def chosen(names: Sequence[str]) -> list[Exhibit]:
    """The exhibits of these names; "all" is every one, a folder all that are in it.

    >>> [exhibit.name for exhibit in chosen(["rank2026/table_1"])]
    ['rank2026/table_1']
    >>> chosen(["rank2026/tabel_1"])
    Traceback (most recent call last):
    ...
    headwise.errors.BadInputError: there is no exhibit 'rank2026/tabel_1'; did you mean ...
    """
    found: dict[str, Exhibit] = {}
    for name in names:
        matching = [e for e in CATALOGUE if name in ("all", e.name, e.name.partition("/")[0])]
        if not matching:
            raise BadInputError(f"there is no exhibit {name!r}", hint=_nearest(name))
        found |= {exhibit.name: exhibit for exhibit in matching}
    return list(found.values())


def _nearest(name: str) -> str:
    known = [exhibit.name for exhibit in CATALOGUE]
    # A person may leave out the folder: compare with the last part too.
    short = {known_name.rpartition("/")[2]: known_name for known_name in known}
    close = get_close_matches(name, known, n=3) or [
        short[match] for match in get_close_matches(name.rpartition("/")[2], short, n=3)
    ]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "headwise reproduce --list shows what there is"
