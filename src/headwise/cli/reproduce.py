"""headwise reproduce: run exhibits, resumably, and compare them with the paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import (
    AsJson,
    matching,
    number_in,
    option,
    passing,
    store_place,
    whole_from,
)
from headwise.devices import cluster_address, device_kind

Exhibits = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EXHIBIT",
        help="Names such as rank2026/table_1, a folder such as rank2026, or all.",
        show_default=False,
    ),
]
ScaleName = Annotated[
    Literal["miniature", "laptop", "gpu", "paper"] | None,
    typer.Option(
        "--scale",
        help="miniature takes seconds, laptop minutes; gpu needs a GPU; paper is full size.",
        show_default="miniature; with --from-records the largest recorded",
    ),
]
DeviceName = Annotated[
    str,
    option(
        "--device",
        "Where to compute: cpu or cuda. On cuda, runs train together.",
        passing(device_kind),
        metavar="DEVICE",
    ),
]
FromRecords = Annotated[
    bool,
    typer.Option("--from-records", help="Compute nothing; draw the rows that come with headwise."),
]
TakeRecords = Annotated[
    bool,
    typer.Option(
        "--take-records",
        help="Start from the rows that come with headwise; add what is missing.",
    ),
]
Only = Annotated[
    list[str] | None,
    option(
        "--only",
        "Run only what has this value, such as layers=3.",
        matching("[^=]+=.*", "FIELD=VALUE such as layers=3"),
        metavar="FIELD=VALUE",
    ),
]
Seconds = Annotated[
    float | None,
    option(
        "--seconds",
        "Start nothing new after this many seconds. Run again to continue.",
        number_in(0),
    ),
]
Cluster = Annotated[
    str | None,
    option(
        "--cluster",
        "Compute on a Dask cluster: local, local:4 or tcp://HOST:PORT.",
        passing(cluster_address),
        metavar="ADDRESS",
        default="processes of this machine",
    ),
]
Workers = Annotated[
    int | None,
    option(
        "--workers",
        "How many processes compute and draw.",
        whole_from(1),
        default="one per processor",
    ),
]
StorePlace = Annotated[
    str | None,
    option(
        "--store",
        "Where answers are kept: a path, or postgresql://HOST/DATABASE.",
        store_place,
        metavar="PLACE",
        default=".headwise/results.db",
    ),
]
OutFolder = Annotated[
    Path,
    typer.Option("--out", help="Folder for figures and report.html; replaces files of that name."),
]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed before.")]
ListOnly = Annotated[
    bool,
    typer.Option(
        "--list",
        help="List the exhibits and their scales; with names or --store, what the store holds.",
    ),
]

#: The default folder for figures and the report.
OUT = Path("exhibits")


def reproduce(
    exhibits: Exhibits = None,
    scale: ScaleName = None,
    device: DeviceName = "cpu",
    from_records: FromRecords = False,
    take_records: TakeRecords = False,
    only: Only = None,
    seconds: Seconds = None,
    cluster: Cluster = None,
    workers: Workers = None,
    store: StorePlace = None,
    out: OutFolder = OUT,
    retry: Retry = False,
    list_only: ListOnly = False,
    as_json: AsJson = False,
) -> None:
    """Recompute figures, tables and theorems, and compare them with the published values.

    An EXHIBIT is a figure, a table or a theorem; --list shows them. The report holds the exhibits
    of this run and replaces one that is in --out already. To gather everything that is stored, use
    headwise report.

    \b
    headwise reproduce all --from-records
    headwise reproduce rank2026/table_2 --scale paper
    """
    from headwise.cli import reproduce_report
    from headwise.cli.progress_bar import progress_bar
    from headwise.papers.reproduce import list_exhibits
    from headwise.papers.reproduce import reproduce as run

    if list_only:
        states = bool(exhibits) or store is not None
        listed = list_exhibits(exhibits or "all", store=store, states=states)
        reproduce_report.show_list(listed, as_json)
        return
    if not exhibits:
        raise UsageError("name an exhibit, or all; headwise reproduce --list shows what there is")
    from headwise.runs import command_line

    found = run(
        exhibits,
        scale=scale,
        device=device,
        from_records=from_records,
        take_records=take_records,
        only=only,
        seconds=seconds,
        cluster=cluster,
        workers=workers,
        store=store,
        out=out,
        retry=retry,
        progress=progress_bar(),
        command=command_line(sys.argv),
    )
    reproduce_report.show(found, as_json)
