"""Scans and reductions in the store: which models were looked at, and what each head uses."""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError
from headwise.papers.computing import store_exists
from headwise.probing.rows import LIMITS, TITLES
from headwise.runs import Record, Store

Scans = dict[str, list[dict[str, Any]]]


def scanned(place: str) -> list[dict[str, Any]]:
    """Every scan in the store: its key, its name, its layers and heads."""
    names, scans = _read(place)
    return [
        {
            "key": key,
            "name": names.get(key, key.partition("-")[0]),
            "heads": len(rows),
            "layers": len({row["layer"] for row in rows}),
            "tokens": max(row.get("tokens") or 0 for row in rows),
            "head_dim": max(row.get("head_dim") or 0 for row in rows),
        }
        for key, rows in scans.items()
    ]


def heads(place: str, key: str) -> dict[str, Any]:
    """The rows of one scan, and the columns that can be drawn as a heat map."""
    found = _scan(place, key)
    known = [name for name in TITLES if name == "rank" or found[0].get(name) is not None]
    columns = [{"name": name, "title": TITLES[name], "top": _top(found, name)} for name in known]
    layers = list(dict.fromkeys(row["layer"] for row in found))
    return {"key": key, "layers": layers, "columns": columns, "rows": found}


def _top(rows: list[dict[str, Any]], column: str) -> float:
    """Where the colours of a column end, as in the report: at what it cannot exceed."""
    limits = [row.get(LIMITS.get(column, column)) for row in rows]
    return float(max((limit for limit in limits if limit is not None), default=0) or 1)


def picture(place: str, key: str, layer: str, head: int) -> dict[str, Any]:
    """The spectrum and the attention pattern of one head, if they were stored."""
    from headwise.probing.stored import PicturedHead

    if not store_exists(place):
        return {}
    model, _, inputs = key.partition("-")
    spec = PicturedHead(model=model, inputs=inputs, layer=layer, head=head)
    with Store.open(place) as store:
        found = store.records_of([spec])
    return dict(found[spec.key].rows[0]) if spec.key in found else {}


def reductions(place: str) -> dict[str, Any]:
    """Every reduction in the store, one row each: what was asked, what it cost and saved."""
    columns = ("model", "asked", "score", "before", "after", "KV bytes", "of them left")
    if not store_exists(place):
        return {"columns": columns, "rows": []}
    with Store.open(place) as store:
        found = _of_kind(store, "reduced_model")
    return {"columns": columns, "rows": [_reduction(one) for one in found]}


def _reduction(record: Record) -> list[str]:
    row, asked = record.rows[0], dict(record.spec["asked"])
    before, after = row["before"], row["after"]
    words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asked.items())
    return [
        "/".join(Path(record.spec["model"]).parts[-2:]),
        words,
        before["name"],
        f"{before['value']:.4g} ± {before['error']:.2g}",
        f"{after['value']:.4g} ± {after['error']:.2g}",
        f"{row['kv_bytes'][1]:,}",
        f"{row['kv_bytes'][1] / row['kv_bytes'][0]:.0%}",
    ]


def _scan(place: str, key: str) -> list[dict[str, Any]]:
    scans = _read(place)[1]
    if key not in scans:
        raise BadInputError("there is no such scan in the store", hint="reload the page")
    return scans[key]


def _read(place: str) -> tuple[dict[str, str], Scans]:
    """Names and rows of every scan; a file that has not changed is not read again."""
    with _reading:
        return _read_at(place, _state(place)) if store_exists(place) else ({}, {})


_reading = threading.Lock()


@lru_cache(maxsize=1)
def _read_at(place: str, _: object) -> tuple[dict[str, str], Scans]:
    scans: Scans = defaultdict(list)
    with Store.open(place) as store:
        models, measured = _of_kind(store, "scanned_model"), _of_kind(store, "scanned_head")
    for record in measured:
        for row in record.rows:
            low, high = row.get("rank_low"), row.get("rank_high")
            middle = None if low is None or high is None else (low + high) / 2
            scans[_key(record)].append(dict(row) | {"rank": middle})
    return {_key(one): str(one.rows[0]["name"]) for one in models}, dict(scans)


def _state(place: str) -> object:
    """What changes when a store is written to; of a database nothing is known, so it is read."""
    if "://" in place:
        return object()
    files = [Path(place), Path(f"{place}-wal")]
    return tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists())


def _of_kind(store: Store, kind: str) -> list[Record]:
    return list(store.records_of_kind(kind).values())


def _key(record: Record) -> str:
    return f"{record.spec['model']}-{record.spec['inputs']}"
