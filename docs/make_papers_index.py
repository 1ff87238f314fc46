"""Write docs/papers-index.md from docs/papers_contents.toml: python docs/make_papers_index.py.

docs/make_exhibits.py writes it too, because new rows change verdicts. The TOML file lists what the
two works contain. The state of each entry comes from the statements, the catalogue of exhibits and
the rows that come with headwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from headwise.papers.catalogue import ENTRIES
from headwise.papers.pages import summary_table
from headwise.papers.reproduction import best_recorded
from headwise.report import Table
from headwise.theory.theorems import STATEMENTS, Statement

HERE = Path(__file__).parent
CONTENTS, PAGE = HERE / "papers_contents.toml", HERE / "papers-index.md"

_HEAD = """# What the papers contain

Every numbered statement, figure and table of both works, the equations, and the unnumbered parts
that matter, in the order of the text. For each: where it is, what it says, how it stands here, and
which file has it.

| state | meaning |
|:--|:--|
| checked | a [statement](theorems.md) with a simulation that meets its hypothesis and a violator |
| finding | checked; the paper errs or leaves out a limit: see the end of [Theorems](theorems.md) |
| replaced by | a statement of ours that proves what the paper does not |
| exhibit | an [exhibit](exhibits.md) computed from recorded rows, at the scale that is named |
| in code | a definition; the file implements it |
| absent | neither; the reason follows |

The rank paper has no numbered definitions, assumptions or corollaries. Its equations run from 1 to
72. The heads paper is read as the talk; "slide" gives the title. Both are in our words.

`python docs/make_papers_index.py` writes this page from `docs/papers_contents.toml`; a test keeps
it up to date.
"""

_TITLES = {"rank paper": "The rank paper", "heads paper": "The heads paper"}

_COLUMNS = ("what", "place", "says", "state", "where")


def contents() -> list[dict[str, Any]]:
    """Return the entries, in the order of the text."""
    return tomllib.loads(CONTENTS.read_text(encoding="utf-8"))["entry"]


def page() -> str:
    """Return the page."""
    found = contents()
    parts = [_HEAD, _counts(found)]
    for work, title in _TITLES.items():
        rows = tuple(_row(entry) for entry in found if entry["work"] == work)
        parts += [f"## {title}", Table(_COLUMNS, rows).markdown()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _counts(found: Sequence[dict[str, Any]]) -> str:
    rows = []
    for work, title in _TITLES.items():
        own = [entry for entry in found if entry["work"] == work]
        checked = sum(bool(entry.get("statements")) for entry in own)
        shown = sum(bool(_exhibits(entry)) and not entry.get("statements") for entry in own)
        absent = sum(_is_absent(entry) for entry in own)
        in_code = len(own) - checked - shown - absent
        rows.append((title, len(own), checked, shown, in_code, absent))
    columns = ("work", "entries", "checked", "exhibits only", "in code only", "absent")
    return Table(columns, tuple(rows)).markdown()


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    statements = [*_statements(entry), *_statements(entry, "replaced_by")]
    files = [f"`theory/statements/{_file(one)}`" for one in statements]
    modules = {one.name: one.module for one in ENTRIES}
    files += [f"`papers/{modules[name]}.py`" for name in _exhibits(entry)]
    files += [f"`{path}`" for path in entry.get("code", [])]
    return (entry["name"], entry["place"], entry["says"], _state(entry), ", ".join(_once(files)))


def _state(entry: dict[str, Any]) -> str:
    parts = [_checked(one) for one in _statements(entry)]
    parts += [f"replaced by: {_link(one)}" for one in _statements(entry, "replaced_by")]
    parts += [line for name in _exhibits(entry) for line in _verdicts(name)]
    if _is_absent(entry):
        parts.append(f"absent: {entry['absent']}")
    return "; ".join(_once(parts)) or "in code"


def _is_absent(entry: dict[str, Any]) -> bool:
    return "absent" in entry and not _exhibits(entry)


def _statements(entry: dict[str, Any], field: str = "statements") -> list[Statement]:
    known = {one.label: one for one in STATEMENTS}
    return [known[label] for label in entry.get(field, [])]


def _exhibits(entry: dict[str, Any]) -> list[str]:
    """Return the exhibits that exist: a name may wait in the file for its exhibit."""
    known = {one.name for one in ENTRIES}
    return [name for name in entry.get("exhibits", []) if name in known]


def _checked(statement: Statement) -> str:
    kind = "finding" if statement.finding else "checked"
    return f"{kind}: {_link(statement)}"


def _link(statement: Statement) -> str:
    return f"[{statement.label}](theorems.md#{statement.slug})"


@cache
def _verdicts(name: str) -> tuple[str, ...]:
    """Return what the recorded rows of an exhibit say, one line for each scale."""
    (entry,) = [one for one in ENTRIES if one.name == name]
    link = f"[{name}](exhibits.md#{name.replace('/', '-')})"
    rows = summary_table(best_recorded(entry.load())).rows
    if not rows:
        return (f"exhibit {link}, no rows yet",)
    lines: list[str] = []
    for _, _, scale, values, _, printed, ours in rows:
        claims = [f"published claims {printed}" * bool(printed), f"our claims {ours}" * bool(ours)]
        told = ", ".join(str(part) for part in (values, *claims) if part)
        lines.append(f"exhibit {link} at scale {scale}: {told}")
    return tuple(lines)


def _file(statement: Statement) -> str:
    return statement.evidence.__module__.rpartition(".")[2] + ".py"


def _once(parts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(parts))


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
