"""Answers that come with the package: rows of runs too long, or too special, to repeat at will."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from headwise.errors import BadInputError
from headwise.papers.exhibit import Exhibit, Scale
from headwise.runs import Records, read_records, write_records


def record_name(exhibit: Exhibit, scale: Scale) -> str:
    """Where the rows of an exhibit at a scale lie among the records.

    >>> from headwise.papers.rank2026.table_1 import TABLE_1
    >>> record_name(TABLE_1, Scale.PAPER)
    'rank2026/table_1_paper.csv'
    """
    return f"{exhibit.name}_{scale.value}.csv"


def recorded_scales(exhibit: Exhibit) -> tuple[Scale, ...]:
    """The scales of which rows come with the package, from small to large.

    >>> from headwise.papers.rank2026.table_1 import TABLE_1
    >>> set(recorded_scales(TABLE_1)) <= set(TABLE_1.scales)
    True
    """
    return tuple(
        scale for scale in exhibit.scales if (_folder() / record_name(exhibit, scale)).is_file()
    )


def recorded(exhibit: Exhibit, scale: Scale) -> Records:
    """The rows of an exhibit that come with the package."""
    scales = recorded_scales(exhibit)
    if scale not in scales:
        there = ", ".join(scales) or "no scale"
        raise BadInputError(
            f"no rows of {exhibit.name} at scale {scale.value} come with headwise",
            hint=f"there are rows of {there}; without --from-records it is computed",
        )
    with as_file(_folder() / record_name(exhibit, scale)) as path:
        return read_records(path)


def record(exhibit: Exhibit, scale: Scale, answers: Records, folder: Path | None = None) -> Path:
    """Write the rows of an exhibit, in the order of its specs, to where the package carries them.

    This is for those who have the sources: an installed copy is not changed by its users.
    """
    path = (folder or _folder()) / record_name(exhibit, scale)
    return write_records(answers.of(exhibit.specs(scale)), path)


def _folder() -> Path:
    # The package is installed as files, so this is a path and not only a resource.
    return Path(str(files("headwise.papers"))) / "records"
