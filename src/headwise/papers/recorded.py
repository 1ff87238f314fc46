"""Answers that come with the package: rows of runs that take long, or need an accelerator."""

from __future__ import annotations

from pathlib import Path

from headwise.errors import ParameterError
from headwise.papers.catalogue import record_path
from headwise.papers.exhibit import Exhibit, Scale
from headwise.runs import Records, read_records, write_records


def recorded_scales(exhibit: Exhibit) -> tuple[Scale, ...]:
    """Return the scales whose rows come with the package, from small to large."""
    return tuple(s for s in exhibit.scales if record_path(exhibit.name, s.value).is_file())


def recorded(exhibit: Exhibit, scale: Scale) -> Records:
    """Read the rows of an exhibit that come with the package."""
    scales = recorded_scales(exhibit)
    if scale not in scales:
        there = ", ".join(scales) or "no scale"
        raise ParameterError(
            f"no rows of {exhibit.name} at scale {scale.value} come with headwise",
            hint=f"there are rows of {there}; compute the others",
        )
    return read_records(record_path(exhibit.name, scale.value))


def record(exhibit: Exhibit, scale: Scale, answers: Records, folder: Path | None = None) -> Path:
    """Write the rows of an exhibit, in the order of its specs, to where the package has them."""
    path = record_path(exhibit.name, scale.value)
    if folder is not None:
        path = folder / path.relative_to(path.parents[1])
    known = [spec for spec in exhibit.specs(scale) if spec.key in answers]
    return write_records(answers.of(known), path)
