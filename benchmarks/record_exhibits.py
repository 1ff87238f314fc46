"""Put the rows of exhibits that a store holds whole beside the package, as committed records.

python benchmarks/record_exhibits.py STORE [EXHIBIT ...] [--scale laptop] [--part] writes
src/headwise/papers/records/<folder>/<file>_<scale>.csv. Miniatures are left out unless named.
With --part an exhibit that can show a part of its rows is recorded as far as it is answered; rows
that were recorded before stay, unless the store has them too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from headwise.papers.catalogue import chosen, record_path
from headwise.papers.exhibit import Scale
from headwise.papers.recorded import record
from headwise.papers.reproduction import Wanted, state_in
from headwise.runs import Records, Store, read_records
from scripts import run_script

RECORDS = Path(__file__).parents[1] / "src" / "headwise" / "papers" / "records"


def recordable(
    store: Store, names: list[str], scales: list[Scale], *, part: bool = False
) -> Iterator[Wanted]:
    """The exhibits, at these scales, of which the store has every answer, or a part if wanted."""
    for exhibit in chosen(names):
        for scale in (scale for scale in exhibit.scales if scale in scales):
            state = state_in(store, Wanted(exhibit, scale))
            if state.complete or (part and exhibit.partial and state.answered):
                yield Wanted(exhibit, scale)


def answers(store: Store, one: Wanted, out: Path, *, part: bool) -> Records:
    """What the store answers; with ``part`` after what was recorded before."""
    found = store.records_of(one.specs())
    path = record_path(one.exhibit.name, one.scale.value)
    before = out / path.relative_to(path.parents[1])
    if not part or not before.is_file():
        return found
    return Records([*read_records(before).values(), *found.values()])


def main() -> None:
    """Record what is whole, and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="a path, or an SQLAlchemy URL")
    parser.add_argument("exhibits", nargs="*", default=["all"])
    parser.add_argument("--scale", choices=list(Scale), help="by default all but miniature")
    parser.add_argument("--part", action="store_true", help="record incomplete exhibits too")
    parser.add_argument("--out", type=Path, default=RECORDS)
    asked = parser.parse_args()
    scales = [Scale(asked.scale)] if asked.scale else [s for s in Scale if s != Scale.MINIATURE]
    if "://" not in asked.store and not Path(asked.store).exists():
        raise SystemExit(f"there is no store {asked.store}; pass one that headwise reproduce wrote")
    with Store.open(asked.store) as store:
        paths = [
            record(
                one.exhibit, one.scale, answers(store, one, asked.out, part=asked.part), asked.out
            )
            for one in recordable(store, asked.exhibits, scales, part=asked.part)
        ]
    for path in paths:
        print(f"{path.relative_to(asked.out)}: {path.stat().st_size} bytes")
    print(f"{len(paths)} records written")


if __name__ == "__main__":
    run_script(main)
