"""headwise trial: settle the question by training candidates side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import (
    AsJson,
    cluster_address,
    device_name,
    figure_file,
    number_above,
    number_in,
    tokenizer_name,
    whole_from,
)

if TYPE_CHECKING:
    from headwise import HeadGeometry
    from headwise.trials import Trial

Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="digits, a file of images (b, c, side, side) or ids, a text file, or a folder of "
        "images or texts with a subfolder for each class.",
    ),
]
Labels = Annotated[Path | None, typer.Option("--labels", help="A file of class numbers (b).")]
Task = Annotated[
    Literal["classify", "next-token"] | None,
    typer.Option("--task", help="What to train for; next-token takes text without labels."),
]
Build = Annotated[
    str | None,
    typer.Option("--build", help="PACKAGE:FUNCTION from a geometry to your own model."),
]
Batches = Annotated[
    str | None,
    typer.Option("--batches", help="PACKAGE:FUNCTION from a seed to (inputs, targets) pairs."),
]
Candidates = Annotated[
    str | None,
    typer.Option(
        "--candidates",
        help="Geometries as heads x rank, such as 4x16,8x8; in 4x8/16 values have rank 16.",
        show_default="those of headwise advise",
    ),
]


def _number(name: str, reader: Callable[..., Any], help_: str) -> typer.models.OptionInfo:
    return typer.Option(name, parser=reader, metavar="NUMBER", help=help_)


Width = Annotated[int, _number("--width", whole_from(1), "Width of the model.")]
Depth = Annotated[int, _number("--depth", whole_from(1), "Layers of the built-in model.")]
Patch = Annotated[int | None, _number("--patch", whole_from(1), "Side of a patch of an image.")]
Size = Annotated[int | None, _number("--size", whole_from(1), "Scale images of a folder to this.")]
Length = Annotated[int | None, _number("--length", whole_from(1), "Tokens of a text.")]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        parser=tokenizer_name,
        metavar="TEXT",
        help="For text: character, word or a tokenizer.json.",
    ),
]
Steps = Annotated[int, _number("--steps", whole_from(1), "Steps of a full training run.")]
Batch = Annotated[int, _number("--batch", whole_from(1), "Samples of a step.")]
Rate = Annotated[float, _number("--rate", number_above(0), "Largest learning rate.")]
Seeds = Annotated[int, _number("--seeds", whole_from(2), "Seeds per geometry, at least 2.")]
Minutes = Annotated[
    float,
    typer.Option(
        "--minutes",
        parser=number_in(0),
        metavar="NUMBER",
        help="Stop after this many minutes.",
        show_default="no limit",
    ),
]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Keep checkpoints here; run again to continue.")
]
Device = Annotated[
    str, typer.Option("--device", parser=device_name, metavar="DEVICE", help="cpu or cuda.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        parser=cluster_address,
        metavar="ADDRESS",
        help="Train on a Dask cluster: local, local:4 or tcp://HOST:PORT.",
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write an HTML report.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        parser=figure_file,
        metavar="FILE",
        help="Draw the curves into a .png, .svg or .pdf file.",
    ),
]


def trial(
    data: Data = None,
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
    stop. Pass DATA, or --build and --batches for your own model.

    \b
    headwise trial digits --candidates 16x4,1x64 --steps 400
    headwise trial text.txt --task next-token --width 128
    """
    from headwise.cli.progress_bar import progress_bar

    _refuse_odd_options(data, build, batches, labels)
    named = None if candidates is None else _geometries(candidates, width)
    bounds: dict[str, Any] = {"minutes": minutes, "folder": folder, "cluster": cluster}
    bounds["progress"] = progress_bar()
    if build is not None:
        from headwise.trials import OwnTraining, splits, trial_of

        how = OwnTraining(steps, rate, tuple(range(seeds)), device=device)
        chosen = named or splits(width)
        found = trial_of(build, str(batches), chosen, training=how, **bounds)
    else:
        from headwise.trials import trial as run_trial

        frame = {"task": task, "width": width, "depth": depth, "patch": patch, "size": size}
        frame |= {"length": length, "tokenizer": tokenizer, "candidates": named}
        sizes = {"steps": steps, "batch": batch, "rate": rate, "seeds": range(seeds)}
        found = run_trial(data, labels, device=device, **frame, **sizes, **bounds)
    _show(found, html, plot, as_json)


def _refuse_odd_options(
    data: str | None, build: str | None, batches: str | None, labels: Path | None
) -> None:
    if (build is None) != (batches is None):
        raise UsageError("expected --build and --batches together, got one of them")
    if (data is None) == (build is None):
        raise UsageError(
            "expected either data or --build with --batches; for example: headwise trial digits"
        )
    if data == "digits" and labels is not None:
        raise UsageError("expected no --labels with digits, which has its own; leave them out")


def _geometries(text: str, width: int) -> list[HeadGeometry]:
    """Read 4x16,4x8/16."""
    from headwise import HeadGeometry

    found = []
    for word in text.split(","):
        found_sizes = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)(?:/([1-9]\d*))?", word.strip())
        if found_sizes is None:
            raise UsageError(f"expected --candidates such as 4x16,8x8 or 4x8/16, got {word!r}")
        heads, qk_rank, v_rank = found_sizes.groups()
        sizes = int(heads), int(heads), int(qk_rank), int(v_rank or qk_rank)
        found.append(HeadGeometry(width, *sizes))
    return found


def _show(found: Trial, html: Path | None, plot: Path | None, as_json: bool) -> None:
    from headwise.cli.console import note, print_json, screen

    if plot is not None:
        from headwise.report import render, save_rendered

        (drawn,) = save_rendered(render(found.plot(), [plot.suffix]), plot.with_suffix(""))
        note(f"figure: {drawn}")
    if html is not None:
        note(f"report: {found.report(html)}")
    if as_json:
        print_json(found.as_json())
    else:
        screen().print(str(found), soft_wrap=True)
