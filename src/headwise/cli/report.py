"""headwise report: write the page of exhibits from what is stored; nothing is computed."""

from __future__ import annotations

from headwise.cli.reproduce import OUT, AsJson, Exhibits, OutFolder, StorePlace


def report(
    exhibits: Exhibits = None,
    store: StorePlace = None,
    out: OutFolder = OUT,
    as_json: AsJson = False,
) -> None:
    """Write the report of everything that headwise reproduce has stored; compute nothing.

    Each exhibit (figure, table or theorem) is shown at its largest stored scale.
    """
    from headwise.cli import reproduce_report
    from headwise.papers.reproduce import stored_exhibits

    reproduce_report.show(stored_exhibits(exhibits or "all", store=store, out=out), as_json)
