"""Record: a stored answer with its spec and provenance. Records: many of them by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headwise.errors import BadInputError
from headwise.report.results import Tabular, short_repr
from headwise.runs.provenance import Provenance
from headwise.runs.spec import Row, Spec


@dataclass(frozen=True)
class Record:
    """One answered spec: its content, rows and provenance.

    Args:
        key: The key of the spec.
        spec: The content of the spec.
        rows: The rows of the answer.
        provenance: How they were computed.

    Example:
        >>> found = Provenance("0.1.0", "2.13.0", "cpu", None, 0.01, "headwise reproduce", None)
        >>> spec = {"kind": "square", "revision": 1, "number": 3.0}
        >>> Record("671254", spec, ({"square": 9.0},), found).joined()
        [{'kind': 'square', 'revision': 1, 'number': 3.0, 'square': 9.0}]
    """

    key: str
    spec: dict[str, Any]
    rows: tuple[Row, ...]
    provenance: Provenance

    __repr__ = short_repr

    def joined(self) -> list[Row]:
        """Return each row merged with the fields of its spec."""
        for row in self.rows:
            twice = [name for name in row if name in self.spec and row[name] != self.spec[name]]
            if twice:
                raise BadInputError(
                    f"{twice[0]!r} is {self.spec[twice[0]]!r} in the spec {self.key} "
                    f"and {row[twice[0]]!r} in its row",
                    hint="read record.spec and record.rows apart",
                )
        return [self.spec | row for row in self.rows]


class Records(Mapping[str, Record], Tabular):
    """Answered specs by key, from a store or from files.

    Args:
        records: The records; a later one replaces an earlier one with the same key.

    ``to_frame`` has a row for each row of each record, merged with the fields of its spec.

    Example:
        >>> from headwise.runs.examples import Square
        >>> none = Records([])
        >>> len(none), [spec.number for spec in none.missing([Square(number=3)])]
        (0, [3.0])
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._by_key = {record.key: record for record in records}

    def __getitem__(self, key: str) -> Record:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, specs: Iterable[Spec]) -> list[Record]:
        """Return the records of these specs, in their order; each must exist."""
        specs = list(specs)
        found = [self._by_key.get(spec.key) for spec in specs]
        missing = [spec for spec, record in zip(specs, found, strict=True) if record is None]
        if missing:
            raise BadInputError(
                f"{len(missing)} of {len(specs)} answers are missing, "
                f"the first that of {missing[0].label}",
                hint="run what is missing first",
            )
        return [record for record in found if record is not None]

    def missing(self, specs: Iterable[Spec]) -> list[Spec]:
        """Return the specs that have no record here."""
        return [spec for spec in specs if spec.key not in self._by_key]

    def __repr__(self) -> str:
        return f"Records({len(self)} records)"

    def _rows(self) -> list[Row]:
        return self.rows()

    def rows(self) -> list[Row]:
        """Return every row of every record, merged with the fields of its spec."""
        return [row for record in self.values() for row in record.joined()]
