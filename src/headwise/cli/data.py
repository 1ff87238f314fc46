"""headwise data: which real sets are found, and the commands that get the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options import AsJson

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
    from headwise.errors import BadInputError

    if folder is not None and not folder.exists():
        raise BadInputError(
            f"there is no folder {folder}",
            hint="create it, or leave FOLDER out to see how to get the data sets",
        )
    from headwise.cli.console import print_json, screen
    from headwise.data import KNOWN_SETS, data_folder

    place = folder or data_folder()
    if place.exists() and not place.is_dir():
        raise BadInputError(
            f"expected a folder of data sets, got the file {place}",
            hint="pass its folder",
        )
    found = {known: known.place(place) for known in KNOWN_SETS}
    if as_json:
        sets = [
            {
                "name": known.name,
                "what": known.what,
                "path": None if path is None else str(path),
                "get": known.get,
                "cite": known.cite,
            }
            for known, path in found.items()
        ]
        print_json({"folder": str(place), "sets": sets})
        return
    missing = [] if place.is_dir() else [f"folder {str(place)!r} does not exist"]
    lines = [*missing, "digits    found in the package: 1,797 images of 8 × 8, 10 classes"]
    for known, path in found.items():
        state = f"found at {path}" if path else f"not in {place}"
        lines.append(f"{known.name:<9} {state}: {known.what} ({known.cite})")
        if path is None:
            lines.append(f"          get it: mkdir -p {place} && cd {place} && {known.get}")
    lines.append("Sizes are the published ones, training + test; a copy may hold fewer.")
    screen().print("\n".join(lines), soft_wrap=True, markup=False, highlight=False)
