"""headwise scan: the ranks of every layer and head of a model on your inputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.cli.console import UsageError, quieten_transformers
from headwise.cli.options import (
    AsJson,
    Html,
    Model,
    figure_file,
    option,
    passing,
    refuse_unwritable,
    store_place,
    text_in_file,
    whole_from,
)
from headwise.scan_arguments import chosen_heads, chosen_layers

if TYPE_CHECKING:
    from headwise.probing import Scan

Text = Annotated[str | None, typer.Option("--text", help="Scan on this text file; - reads stdin.")]
Images = Annotated[Path | None, typer.Option("--images", help="Scan on the images of a folder.")]
Ids = Annotated[
    Path | None,
    typer.Option("--ids", help="Scan on a file of token ids, one sequence per line, or an array."),
]
AtRandom = Annotated[bool, typer.Option("--random", help="Scan on random tokens or pixels.")]
Layers = Annotated[
    str | None,
    option(
        "--layers",
        "Which layers, for example 0,5-7 or a name.",
        passing(chosen_layers),
        metavar="LAYERS",
    ),
]
Heads = Annotated[
    str | None,
    option("--heads", "Which heads, for example 0,2-3.", passing(chosen_heads), metavar="HEADS"),
]
Length = Annotated[
    int,
    option("--length", "Use at most this many tokens.", whole_from(2)),
]
Batch = Annotated[
    int,
    option("--batch", "Number of sequences or images.", whole_from(1)),
]
AgainstInit = Annotated[
    bool, typer.Option("--against-init", help="Measure an untrained copy of the model too.")
]
Plot = Annotated[
    Path | None,
    option(
        "--plot", "Draw the heat map into a .png, .svg or .pdf file.", figure_file, metavar="FILE"
    ),
]


def csv_file(text: str | Path) -> Path:
    """Read the name of a file for rows as CSV.

    >>> csv_file("rows.csv").name
    'rows.csv'
    """
    file = Path(text)
    if file.suffix.lower() != ".csv":
        other = file.with_suffix(".csv")
        raise typer.BadParameter(f"expected a CSV file, got {file}; pass --csv {other}")
    return file


Csv = Annotated[Path | None, option("--csv", "Write the rows as CSV.", csv_file, metavar="FILE")]
StorePlace = Annotated[
    str | None,
    option(
        "--store",
        "Where rows are kept as they are measured: a path, or postgresql://HOST/DATABASE.",
        store_place,
        metavar="PLACE",
        default=".headwise/results.db",
    ),
]

#: What the column says that --against-init adds.
NEW = " new 0.01: rank 0.01 with new weights."


def scan(
    model: Model,
    text: Text = None,
    images: Images = None,
    ids: Ids = None,
    random: AtRandom = False,
    layers: Layers = None,
    heads: Heads = None,
    length: Length = 512,
    batch: Batch = 1,
    against_init: AgainstInit = False,
    plot: Plot = None,
    csv: Csv = None,
    html: Html = None,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Measure the attention rank of every head of a trained model.

    Pass what to run it on: --text, --images, --ids or --random. Run the same command again after it
    was stopped: heads that are stored are not measured again.

    \b
    headwise scan model_folder --text text.txt --plot ranks.png
    """
    refuse_unwritable(plot, csv, html)
    _refuse_inputs({"--text": text, "--images": images, "--ids": ids, "--random": random or None})
    asked: dict[str, Any] = {"layers": layers, "heads": heads, "images": images, "ids": ids}
    asked |= {"text": None if text is None else text_in_file(text), "random": 0 if random else None}
    asked |= {"length": length, "batch": batch}
    from headwise.hugging_face import find_source

    find_source(model)  # refuses a missing path before torch is imported
    found = _found(model, store, **asked, against_init=against_init)
    # Files first: the reader of a pipe may leave before everything is printed.
    _write(found, plot=plot, csv=csv, html=html)
    if as_json:
        from headwise.cli.console import print_json

        print_json(found.as_json())
    else:
        _print(found)


def _found(model: str, store: str | None, **asked: Any) -> Scan:
    import headwise
    from headwise.cli.progress_bar import progress_bar
    from headwise.runs import DEFAULT_STORE

    quieten_transformers()
    place = DEFAULT_STORE if store is None else store
    return headwise.scan(model, **asked, store=place, progress=progress_bar())


def _refuse_inputs(named: dict[str, object]) -> None:
    given = [option for option, value in named.items() if value is not None]
    if not given:
        raise UsageError("pass --text FILE, --images FOLDER, --ids FILE or --random")
    if len(given) > 1 and given != ["--text", "--images"]:
        raise UsageError(f"expected one input, got {' and '.join(given)}; pass one")


def _print(found: Scan) -> None:
    """Print one line for each layer: means over its heads; then the summary."""
    from rich.table import Table

    from headwise.cli.console import screen
    from headwise.probing import LEGEND, described, mean_of, sentences, short_names, summary

    columns = ("coarse_rank", "output_rank", "rank", "effective_rank", "hardmax_rank", "law")
    columns += ("query_key_rank", "logit_scale")
    titles = ("rank\n0.01", "output", "rank\n1e-8", "eff.\nrank", "hardmax", "law")
    titles += ("query-\nkey", "logit\nscale")
    start, meant = ((), "") if found.initial is None else (("new\n0.01",), NEW)
    table = Table("layer", *titles, *start, "mask", box=None, padding=(0, 1, 0, 0))
    table.columns[0].overflow = "fold"
    for layer, name in zip(found.layers, short_names(found.layers), strict=True):
        rows = found.of_layer(layer)
        means = [_shown(mean_of(rows, column)) for column in columns]
        if found.initial is not None:
            means.append(_shown(mean_of(found.initial.of_layer(layer), "coarse_rank")))
        table.add_row(name, *means, rows[0].mask)
    out = screen()
    out.print(f"{described(found)}. Each line is the mean over the heads of a layer:")
    out.print(table)
    out.print(" ".join(LEGEND) + meant, style="dim", highlight=False)
    for line in (*sentences(summary(found)), *found.notes):
        out.print(line)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _write(found: Scan, *, plot: Path | None, csv: Path | None, html: Path | None) -> None:
    from headwise.cli.console import note
    from headwise.runs import command_line

    if plot is not None:
        found.plot(file=plot)
        note(f"drawn: {plot}")
    if csv is not None:
        found.write_csv(csv)
        note(f"written: {csv}")
    if html is not None:
        note(f"report: {found.report(html, command=command_line(sys.argv))}")
