"""headwise trial: settle the question by training candidates side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import whole

if TYPE_CHECKING:
    from torch import Tensor

    from headwise.trials import Trial

#: The data set that comes with the package.
DIGITS = "digits"

Data = Annotated[
    str, typer.Argument(help="A file of images (b, c, side, side) or ids (b, n), or: digits.")
]
Labels = Annotated[Path | None, typer.Option("--labels", help="A file of class numbers (b).")]
Width = Annotated[int, typer.Option("--width", min=1, help="Width of the encoder.")]
Depth = Annotated[int, typer.Option("--depth", min=1, help="Layers of the encoder.")]
Patch = Annotated[int, typer.Option("--patch", min=1, help="Side of the patches of images.")]
Steps = Annotated[
    int, typer.Option("--steps", parser=whole, help="Full length of training.", metavar="NUMBER")
]
Rate = Annotated[float, typer.Option("--rate", min=1e-9, help="Largest learning rate.")]
Seeds = Annotated[int, typer.Option("--seeds", min=2, help="Number of seeds, two or more.")]
Minutes = Annotated[float, typer.Option("--minutes", min=0, help="Stop in time.")]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Keep checkpoints; the same command goes on.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def trial(
    data: Data,
    labels: Labels = None,
    width: Width = 64,
    depth: Depth = 2,
    patch: Patch = 2,
    steps: Steps = 400,
    rate: Rate = 3e-3,
    seeds: Seeds = 3,
    minutes: Minutes = math.inf,
    folder: Folder = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Train head geometries side by side on your data and say which is best."""
    from headwise.cli.console import print_json
    from headwise.cli.progress_bar import progress_bar
    from headwise.trials import trial as run_trial

    inputs, classes = _read(data, labels)
    found = run_trial(
        inputs,
        classes,
        width=width,
        depth=depth,
        patch=patch,
        steps=steps,
        rate=rate,
        seeds=range(seeds),
        minutes=minutes,
        folder=folder,
        device=device,
        progress=progress_bar(),
    )
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)


def _read(data: str, labels: Path | None) -> tuple[Tensor, Tensor]:
    if data == DIGITS and labels is None:
        from headwise.data.images import digits

        found = digits()
        return found.images, found.labels
    if labels is None:
        raise UsageError(f"expected --labels FILE for {data}, got none; pass class numbers")
    from headwise.arrays import read_array

    return read_array(Path(data)), read_array(labels)


def _print(found: Trial) -> None:
    from rich.table import Table

    from headwise.cli.console import screen
    from headwise.trials.candidates import name_of

    columns = ("geometry", "steps", f"predicted {found.measure}", "probability best")
    table = Table(*columns, "parameters", "KV bytes", "Pareto front")
    for one in found.entrants:
        table.add_row(
            name_of(one.geometry),
            str(one.steps),
            f"{one.predicted:.4f} ± {one.error:.4f}",
            f"{one.probability:.2f}",
            f"{one.parameters:,}",
            f"{one.cache_bytes:,}",
            "yes" if one.on_front else "",
        )
    out = screen()
    out.print(table)
    best = found.best
    out.print(
        f"{name_of(best.geometry)} (heads x rank) is best after {found.full} steps "
        f"with probability {best.probability:.2f}.",
        style="bold",
    )
    if not found.finished:
        out.print("Time ran out before the full length: the prediction is an extrapolation.")
