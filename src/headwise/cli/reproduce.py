"""headwise reproduce: run exhibits, resumably, and set them beside what the papers print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Exhibits = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[EXHIBIT]...",
        help="Names such as rank2026/table_1, a folder such as rank2026, or all.",
        show_default=False,
    ),
]
ScaleName = Annotated[
    str | None,
    typer.Option(
        "--scale",
        help="miniature (seconds), laptop (minutes), gpu (with an accelerator) or paper (as "
        "printed).",
        show_default="miniature; with --from-records the largest recorded",
    ),
]
DeviceName = Annotated[str, typer.Option("--device", help="Where to compute: cpu or cuda.")]
FromRecords = Annotated[
    bool,
    typer.Option("--from-records", help="Compute nothing: draw the rows that come with headwise."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Compute on a Dask cluster: local, local:4 or tcp://HOST:PORT.",
        show_default="processes of this machine",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="How many processes compute and draw.", show_default="one per processor"),
]
StorePlace = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Where answers are kept: a path, or an SQLAlchemy URL.",
        show_default=".headwise/results.db",
    ),
]
OutFolder = Annotated[
    Path,
    typer.Option(
        "--out",
        help="Where figures and report.html go; those of the same name that are there are "
        "replaced.",
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Ask again what failed before.")]
ListOnly = Annotated[bool, typer.Option("--list", help="Show every exhibit and what is stored.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

#: Where figures and the report go when nobody says otherwise.
OUT = Path("exhibits")


def reproduce(
    exhibits: Exhibits = None,
    scale: ScaleName = None,
    device: DeviceName = "cpu",
    from_records: FromRecords = False,
    cluster: Cluster = None,
    workers: Workers = None,
    store: StorePlace = None,
    out: OutFolder = OUT,
    retry: Retry = False,
    list_only: ListOnly = False,
    as_json: AsJson = False,
) -> None:
    """Run figures and tables of the papers, and say what agrees with print.

    The report holds the exhibits of this run alone, and replaces one that is in --out
    already; headwise report gathers everything that is stored.
    """
    from headwise.cli import reproduce_choice, reproduce_report
    from headwise.cli.console import UsageError
    from headwise.papers.catalogue import chosen

    if list_only:
        reproduce_report.show_states(chosen(exhibits or ["all"]), store, as_json)
        return
    if not exhibits:
        raise UsageError("name an exhibit, or all; headwise reproduce --list shows what there is")
    reproduce_choice.refuse_no_workers(workers)
    if from_records:
        found = reproduce_choice.recorded(exhibits, scale)
    else:
        wanted = reproduce_choice.wanted(exhibits, scale or "miniature")
        executor = reproduce_choice.executor(device, cluster, workers, store)
        found = reproduce_choice.computed(wanted, executor, store, device=device, retry=retry)
    reproduce_report.show(found, out, as_json, workers)
