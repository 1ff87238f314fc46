"""Published values, as the package carries them: one small CSV file per table."""

from __future__ import annotations

import csv
from importlib.resources import files


def printed_table(name: str) -> list[dict[str, str]]:
    """The lines of a published table, every value as text."""
    text = (files("headwise.papers") / "printed" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
