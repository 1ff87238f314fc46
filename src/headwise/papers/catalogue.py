"""Every exhibit there is, by hand; and how a name finds one."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from headwise.errors import BadInputError
from headwise.papers.beyond.finite_law import FINITE_LAW
from headwise.papers.beyond.float32_trap import FLOAT32_TRAP
from headwise.papers.beyond.init_scale import INIT_SCALE
from headwise.papers.beyond.log_squared import LOG_SQUARED
from headwise.papers.beyond.uncentred_inputs import UNCENTRED_INPUTS
from headwise.papers.exhibit import Exhibit
from headwise.papers.heads2024 import HEADS_2024
from headwise.papers.rank2026.figure_1 import FIGURE_1
from headwise.papers.rank2026.figure_2c import FIGURE_2C
from headwise.papers.rank2026.figure_5a import FIGURE_5A
from headwise.papers.rank2026.figure_5b import FIGURE_5B
from headwise.papers.rank2026.figure_5c import FIGURE_5C
from headwise.papers.rank2026.figure_6 import FIGURE_6
from headwise.papers.rank2026.table_1 import TABLE_1
from headwise.papers.rank2026.table_2 import TABLE_2
from headwise.papers.rank2026.theorem_1 import THEOREM_1

CATALOGUE: tuple[Exhibit, ...] = (
    FIGURE_1,
    TABLE_1,
    TABLE_2,
    FIGURE_2C,
    FIGURE_5A,
    FIGURE_5B,
    FIGURE_5C,
    FIGURE_6,
    THEOREM_1,
    *HEADS_2024,
    FINITE_LAW,
    LOG_SQUARED,
    FLOAT32_TRAP,
    UNCENTRED_INPUTS,
    INIT_SCALE,
)


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
