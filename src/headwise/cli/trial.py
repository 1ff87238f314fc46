"""headwise trial: settle the question by training candidates side by side."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import whole

if TYPE_CHECKING:
    from headwise.geometry import HeadGeometry
    from headwise.trials import Trial

Data = Annotated[
    str | None,
    typer.Argument(
        help="digits, a file of images (b, c, side, side) or ids, a text file, or a folder of "
        "images or texts with a subfolder for each class."
    ),
]
Labels = Annotated[Path | None, typer.Option("--labels", help="A file of class numbers (b).")]
Task = Annotated[
    str | None, typer.Option("--task", help="classify or next-token; text needs no labels.")
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
        help="Heads x rank by commas, such as 4x16,8x8 or 4x8/16 (query-key/value rank). "
        "Default: those that advise names.",
    ),
]
Width = Annotated[int, typer.Option("--width", min=1, help="Width of the model.")]
Depth = Annotated[int, typer.Option("--depth", min=1, help="Layers of the built-in model.")]
Patch = Annotated[int | None, typer.Option("--patch", min=1, help="Side of image patches.")]
Size = Annotated[int | None, typer.Option("--size", min=1, help="Scale images of a folder.")]
Length = Annotated[int | None, typer.Option("--length", min=1, help="Tokens of a text.")]
Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", help="character, word or a tokenizer.json.")
]
Steps = Annotated[
    int, typer.Option("--steps", parser=whole, help="Full length of training.", metavar="NUMBER")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Samples of a step.")]
Rate = Annotated[float, typer.Option("--rate", min=1e-9, help="Largest learning rate.")]
Seeds = Annotated[int, typer.Option("--seeds", min=2, help="Number of seeds, two or more.")]
Minutes = Annotated[float, typer.Option("--minutes", min=0, help="Stop in time.")]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Keep checkpoints; the same command goes on.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Train on Dask: local, local:4 or tcp://HOST:PORT."),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write an HTML report.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure: .png, .svg or .pdf.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


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
    """Train head geometries side by side on your data and say which is best."""
    from headwise.cli.progress_bar import progress_bar

    if task not in (None, "classify", "next-token"):
        raise UsageError(f"expected --task classify or next-token, got {task}")
    _refuse_odd_options(data, build, batches, plot)
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
    data: str | None, build: str | None, batches: str | None, plot: Path | None
) -> None:
    if (build is None) != (batches is None):
        raise UsageError("expected --build and --batches together, got one of them")
    if (data is None) == (build is None):
        raise UsageError(
            "expected either data or --build with --batches; for example: headwise trial digits"
        )
    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"expected --plot FILE ending in .png, .svg or .pdf, got {plot.name}")


def _geometries(text: str, width: int) -> list[HeadGeometry]:
    """Read 4x16,4x8/16."""
    from headwise.geometry import HeadGeometry

    found = []
    for word in text.split(","):
        heads, _, ranks = word.strip().partition("x")
        qk_rank, _, v_rank = ranks.partition("/")
        if not (heads.isdigit() and qk_rank.isdigit() and (v_rank or qk_rank).isdigit()):
            raise UsageError(f"expected --candidates such as 4x16,8x8 or 4x8/16, got {word!r}")
        sizes = int(heads), int(heads), int(qk_rank), int(v_rank or qk_rank)
        found.append(HeadGeometry(width, *sizes))
    return found


def _show(found: Trial, html: Path | None, plot: Path | None, as_json: bool) -> None:
    from headwise.cli.console import note, print_json, screen

    if plot is not None:
        from headwise.report import render
        from headwise.whole_files import write_whole

        drawn = render(found.plot(), [plot.suffix])[plot.suffix]
        note(f"figure: {write_whole(plot, drawn, hint='choose another folder')}")
    if html is not None:
        note(f"report: {found.report(html)}")
    if as_json:
        print_json(found.as_json())
    else:
        screen().print(str(found), soft_wrap=True)
