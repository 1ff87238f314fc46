"""headwise report: rebuild the page of exhibits from what is stored; nothing is computed."""

from __future__ import annotations

from pathlib import Path

from headwise.cli.reproduce import OUT, AsJson, Exhibits, OutFolder, StorePlace


def report(
    exhibits: Exhibits = None,
    store: StorePlace = None,
    out: OutFolder = OUT,
    as_json: AsJson = False,
) -> None:
    """Write figures and the report from stored answers, each exhibit at its largest scale."""
    from headwise.cli import reproduce_report
    from headwise.errors import BadInputError
    from headwise.papers.catalogue import chosen
    from headwise.papers.reproduction import from_store, largest_stored
    from headwise.runs import Store
    from headwise.runs.locations import DEFAULT_STORE

    place = str(DEFAULT_STORE) if store is None else store
    if "://" not in place and not Path(place).exists():
        raise BadInputError(f"there is no store {place}", hint="headwise reproduce makes one")
    with Store.open(place) as opened:
        wanted = [largest_stored(opened, exhibit) for exhibit in chosen(exhibits or ["all"])]
        found = [from_store(opened, one) for one in wanted if one is not None]
    if not found:
        raise BadInputError(
            f"{place} holds no exhibit whole", hint="headwise reproduce --list shows what it has"
        )
    reproduce_report.show(found, out, as_json)
