"""headwise data: which real sets are found, and the commands that get the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.options import AsJson
from headwise.endings import refuse_missing_folder

if TYPE_CHECKING:
    from headwise.data import FoundSets

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="Where to look.",
        metavar="FOLDER",
        show_default="the variable HEADWISE_DATA, or data",
    ),
]


def data(folder: Folder = None, as_json: AsJson = False) -> None:
    """List the real datasets found in a folder, and how to get the missing ones."""
    if folder is not None:
        refuse_missing_folder(folder)  # before torch is imported
    from headwise.cli.console import print_json, screen
    from headwise.data import find_sets

    found = find_sets(folder)
    if as_json:
        print_json(found.as_json())
    else:
        lines = _lines(found)
        screen().print("\n".join(lines), soft_wrap=True, markup=False, highlight=False)


def _lines(found: FoundSets) -> list[str]:
    place = found.folder
    lines = [] if place.is_dir() else [f"folder {str(place)!r} does not exist"]
    digits = found.as_json()["sets"][0]
    lines.append(f"{digits['name']:<9} found in the package: {digits['what']}")
    for known, path in found.places.items():
        state = f"found at {path}" if path else f"not in {place}"
        lines.append(f"{known.name:<9} {state}: {known.what} ({known.cite})")
        if path is None:
            lines.append(f"          get it: {found.command(known)}")
    return [*lines, "Sizes are the published ones, training + test; a copy may hold fewer."]
