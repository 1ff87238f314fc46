"""What a store must hold after an attack: every answer once, byte for byte."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from benchmarks.attack.sums import PAUSE, specs

from headwise.runs import Store


def answers(store: str) -> dict[str, tuple[str, str]]:
    """Spec and rows of every answer as they are written in the store, by key."""
    if "://" not in store and not Path(store).exists():
        return {}
    with Store.open(store):
        pass
    query = "SELECT key, spec, rows FROM headwise_results WHERE failure IS NULL"
    if "://" in store:
        import psycopg

        connection = psycopg.connect(store)
    else:
        connection = sqlite3.connect(store)
    try:
        found = connection.execute(query).fetchall()
    finally:
        connection.close()
    by_key = {key: (spec, rows) for key, spec, rows in found}
    if len(by_key) != len(found):
        raise AssertionError("a key is stored twice")
    return by_key


def differences(
    store: str, count: int, seconds: float = PAUSE, *, subset: bool = False
) -> list[str]:
    """What is lost or different, against answers that nothing disturbed; a subset may hold more."""
    found = answers(store)
    wanted = {spec.key: spec for spec in specs(count, seconds)}
    lost = [f"{key} is lost" for key in wanted.keys() - found.keys()]
    strange = [f"{key} was never asked" for key in found.keys() - wanted.keys() if not subset]
    other = [
        f"{key} is different: {found[key][1]}"
        for key in wanted.keys() & found.keys()
        if found[key][1] != _written(wanted[key].model_copy(update={"seconds": 0.0}).ask())
    ]
    return lost + strange + other


def _written(rows: object) -> str:
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
