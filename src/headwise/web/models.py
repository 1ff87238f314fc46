"""Scans in the store: which models were looked at, and what each head uses."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from headwise.errors import BadInputError
from headwise.papers.computing import store_exists
from headwise.runs import Store

#: The kind of a stored head (``headwise.probing.stored``).
KIND = "scanned_head"


def scanned(place: str) -> list[dict[str, Any]]:
    """Every scan in the store: its key, its layers and heads."""
    return [
        {
            "key": key,
            "heads": len(rows),
            "layers": len({row["layer"] for row in rows}),
            "tokens": max(row.get("tokens") or 0 for row in rows),
            "head_dim": max(row.get("head_dim") or 0 for row in rows),
        }
        for key, rows in _scans(place).items()
    ]


def heads(place: str, key: str) -> dict[str, Any]:
    """The rows of one scan."""
    found = _scans(place).get(key)
    if found is None:
        raise BadInputError("there is no such scan in the store", hint="reload the page")
    layers = list(dict.fromkeys(row["layer"] for row in found))
    return {"key": key, "layers": layers, "rows": found}


def _scans(place: str) -> dict[str, list[dict[str, Any]]]:
    if not store_exists(place):
        return {}
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with Store.open(place) as store:
        for record in store.records().values():
            if record.spec.get("kind") == KIND:
                key = f"{record.spec['model'][:12]}-{record.spec['inputs'][:12]}"
                found[key] += [dict(row) for row in record.rows]
    return dict(found)
