"""headwise trial: settle the question by training candidates side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import (
    AsJson,
    Html,
    count_from,
    figure_file,
    number_above,
    option,
    passing,
    refuse_missing,
    refuse_unwritable,
    tokenizer_name,
    whole_from,
)
from headwise.devices import cluster_address, device_kind
from headwise.geometry import read_geometries

if TYPE_CHECKING:
    from headwise.trials import Trial

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        help="digits, a file of images (b, c, side, side), vectors (b, n, c), ids or text, a "
        "folder of images or texts with a subfolder for each class, or PACKAGE:FUNCTION.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option("--labels", help="A file of class numbers, or of numbers to predict (b)."),
]
Task = Annotated[
    Literal["classify", "regress", "next-token"] | None,
    typer.Option(
        "--task",
        help="What to train for; regress predicts a number, next-token takes text without labels.",
    ),
]
Build = Annotated[
    str | None,
    typer.Option("--build", help="PACKAGE:FUNCTION from a geometry to your own model."),
]
Batches = Annotated[
    str | None,
    typer.Option("--batches", help="PACKAGE:FUNCTION that yields (inputs, targets), from a seed."),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        help="Geometries as heads x rank, such as 4x16,8x8; in 4x8/16 values have rank 16.",
        show_default="those of headwise advise; for your own model, splits of the width",
    ),
]


#: The most columns of an answer.
MOST_COLUMNS = 100

#: What is asked of ``headwise.trial_of``; the other options concern built-in models.
OWN_MODELS = ("build", "batches", "candidates", "steps", "rate", "seeds", "minutes", "folder")
OWN_MODELS += ("device", "cluster", "width")

Width = Annotated[int, option("--width", "Width of the model.", whole_from(1))]
Depth = Annotated[int, option("--depth", "Layers of the built-in model.", whole_from(1))]
Patch = Annotated[int | None, option("--patch", "Side of a patch of an image.", whole_from(1))]
Size = Annotated[int | None, option("--size", "Scale images of a folder to this.", whole_from(1))]
Length = Annotated[int | None, option("--length", "Tokens of a text.", whole_from(1))]
Tokenizer = Annotated[
    str | None,
    option(
        "--tokenizer",
        "For text: character, word or a tokenizer.json.",
        tokenizer_name,
        metavar="TEXT",
    ),
]
Steps = Annotated[int, option("--steps", "Steps of a full training run.", whole_from(1))]
Batch = Annotated[int, option("--batch", "Samples of a step.", whole_from(1))]
Rate = Annotated[float, option("--rate", "Largest learning rate.", number_above(0))]
Seeds = Annotated[
    int,
    option(
        "--seeds",
        "Number of seeds, at least 2; the first one trains all geometries.",
        count_from(2, such_as="3"),
    ),
]
Minutes = Annotated[
    float,
    option("--minutes", "Stop after this many minutes.", number_above(0), default="no limit"),
]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Keep checkpoints here; run again to continue.")
]
Device = Annotated[str, option("--device", "cpu or cuda.", passing(device_kind), metavar="DEVICE")]
Cluster = Annotated[
    str | None,
    option(
        "--cluster",
        "Train on a Dask cluster: local, local:4 or tcp://HOST:PORT.",
        passing(cluster_address),
        metavar="ADDRESS",
    ),
]
Plot = Annotated[
    Path | None,
    option(
        "--plot", "Draw the curves into a .png, .svg or .pdf file.", figure_file, metavar="FILE"
    ),
]


def trial(
    source: Source = None,
    labels: Labels = None,
    task: Task = None,
    build: Build = None,
    batches: Batches = None,
    candidates: Candidates = None,
    width: Width = 64,
    depth: Depth = 2,
    patch: Patch = None,
    size: Size = None,
    length: Length = None,
    tokenizer: Tokenizer = None,
    steps: Steps = 400,
    batch: Batch = 32,
    rate: Rate = 3e-3,
    seeds: Seeds = 3,
    minutes: Minutes = math.inf,
    folder: Folder = None,
    device: Device = "cpu",
    cluster: Cluster = None,
    html: Html = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Train head geometries side by side on your data and say which is best.

    A geometry is a number of heads and their rank. After each round those that are unlikely to win
    stop. With SOURCE a small built-in model of --depth layers trains; for your own model pass
    --build and --batches.

    \b
    headwise trial digits --candidates 16x4,1x64 --steps 400
    headwise trial sensors.npy --labels labels.npy --width 96
    headwise trial text.txt --task next-token --width 128
    """
    asked = dict(locals())  # every option; trial and trial_of have parameters of the same names
    for own in ("html", "plot", "as_json"):
        del asked[own]
    _refuse_odd_options(source, build, batches, labels)
    refuse_unwritable(plot, html)
    refuse_missing(source, arrays=(labels,))
    if candidates is not None:
        read_geometries(candidates, width)  # refuses other texts before anything is imported
    _show(_found(asked), html, plot, as_json)


def _found(asked: dict[str, Any]) -> Trial:
    """Train built-in models, or own ones, which need fewer parameters."""
    import headwise
    from headwise.cli.progress_bar import progress_bar

    progress = progress_bar()
    if asked["build"] is None:
        built_in = {name: each for name, each in asked.items() if name not in ("build", "batches")}
        return headwise.trial(**built_in, progress=progress)
    own = {name: asked[name] for name in OWN_MODELS}
    return headwise.trial_of(**own, progress=progress)


def _refuse_odd_options(
    source: str | None, build: str | None, batches: str | None, labels: Path | None
) -> None:
    if (build is None) != (batches is None):
        got, other = ("--build", "--batches") if batches is None else ("--batches", "--build")
        raise UsageError(f"expected --build with --batches, got {got} alone; pass {other} too")
    if (source is None) == (build is None):
        got = "neither" if source is None else "both"
        raise UsageError(
            f"expected SOURCE, or --build with --batches, got {got}; pass one or the other, for "
            "example: headwise trial digits"
        )
    if source == "digits" and labels is not None:
        raise UsageError("expected no --labels with digits, which have their own; leave them out")


def _show(found: Trial, html: Path | None, plot: Path | None, as_json: bool) -> None:
    from headwise.cli.console import note, print_json, screen

    if plot is not None:
        found.plot(plot)
        note(f"figure: {plot}")
    if html is not None:
        note(f"report: {found.report(html)}")
    if as_json:
        print_json(found.as_json())
    else:
        console = screen()
        console.print(found.text(min(MOST_COLUMNS, console.width)), soft_wrap=True)
