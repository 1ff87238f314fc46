"""What each view shows, by the same functions as the command and Python."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import headwise
from headwise.errors import BadInputError, HeadwiseError, ParameterError
from headwise.masks import MaskName

#: Longest head that is simulated for its picture.
MOST_PICTURED = 256

#: Standard deviation of the logits: with weights N(0, 1) it is the width of the model.
SHARPNESS = 384.0

#: Known models as points of the bounds: width, rank of a head, number of heads.
KNOWN_MODELS = (
    ("BERT-base", 768, 64, 12),
    ("GPT-2", 768, 64, 12),
    ("SmolLM2-135M", 576, 64, 9),
    ("Llama 2 7B", 4096, 128, 32),
    ("Llama 3 70B", 8192, 128, 64),
    ("Gemma 3 270M", 640, 256, 4),
)


@lru_cache(maxsize=512)
def law(length: int, mask: MaskName, fraction: float) -> dict[str, Any]:
    """The finite law at a length, over head dimensions."""
    return headwise.law(length, None, mask, fraction).as_json()


@lru_cache(maxsize=64)
def simulated_head(length: int, head_dim: int, mask: MaskName, seed: int) -> dict[str, Any]:
    """A random head at the paper's setting: its attention, its rank, and the columns it uses."""
    import torch

    from headwise.randomness import stream
    from headwise.spectra import LogWeights

    if not 2 <= length <= MOST_PICTURED:
        raise ParameterError(
            f"expected between 2 and {MOST_PICTURED} tokens for a picture, got {length}",
            hint="move the slider of the length down",
        )
    draws = stream(seed, "page head")
    shape = (length, head_dim)
    queries, keys = (torch.randn(shape, generator=draws, dtype=torch.float64) for _ in range(2))
    logits = SHARPNESS * queries @ keys.T / math.sqrt(head_dim)
    if mask == "causal":
        logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -math.inf)
    weights = torch.softmax(logits, -1)
    used = sorted(set(weights.argmax(-1).tolist()))
    found = headwise.count(LogWeights(logits))
    return {
        "weights": [[round(value, 4) for value in row] for row in weights.tolist()],
        "used": used,
        "low": int(found.low),
        "high": int(found.high),
        "seed": seed,
    }


@lru_cache(maxsize=256)
def bounds(width: int, error: float) -> dict[str, Any]:
    """The heads that an error needs, for every rank below the width."""
    ranks = sorted({round(2 ** (k / 2)) for k in range(2 * 14)} & set(range(1, width)))
    curve = [(rank, _log_heads(width, rank, error)) for rank in ranks]
    known = [(rank, value) for rank, value in curve if value is not None]
    return {
        "width": width,
        "error": error,
        "rank": [rank for rank, _ in known],
        "log10_heads": [value for _, value in known],
        "models": known_models(),
    }


@cache
def known_models() -> list[dict[str, Any]]:
    """The least error that the heads of known models leave, one layer."""
    return [
        {
            "name": name,
            "width": width,
            "rank": rank,
            "heads": heads,
            "error": headwise.bound(width, rank, heads=heads).as_json()["error_lower_bound"],
        }
        for name, width, rank, heads in KNOWN_MODELS
    ]


def _log_heads(width: int, rank: int, error: float) -> float | None:
    """The decimal logarithm of the heads needed; None where there is no bound to show."""
    try:
        found = headwise.bound(width, rank, error=error).heads
    except HeadwiseError:
        return None
    return math.log10(found) if found and math.isfinite(found) else None


def exhibits() -> list[dict[str, Any]]:
    """Every exhibit with its title and scales; nothing is loaded."""
    from headwise.papers.reproduce import list_exhibits

    return list_exhibits()


@lru_cache(maxsize=128)
def exhibit(name: str) -> dict[str, Any]:
    """One exhibit from its records: verdict, claims, figures and cells."""
    from headwise.papers.comparison import verdict
    from headwise.web.figures import figures

    found = headwise.reproduce(name, from_records=True).exhibits
    parts = []
    for one in found:
        shown = one.shown
        parts.append(
            {
                "scale": one.wanted.scale.value,
                "title": one.title,
                "command": one.wanted.command,
                "problem": one.problem,
                "sources": list(one.sources),
                "verdict": verdict(shown.cells, one.why_uncompared),
                "tally": _tally(shown.cells),
                "cells": [_cell(cell) for cell in shown.cells],
                "claims": [
                    {"words": c.words, "holds": c.holds, "source": c.source} for c in shown.claims
                ],
                "remarks": list(shown.remarks),
                "figures": figures(shown.panels),
            }
        )
    return {"name": name, "parts": parts}


def _tally(cells: Iterable[Any]) -> dict[str, int]:
    counted = {"agrees": 0, "differs": 0, "undecided": 0}
    for cell in cells:
        counted[cell.verdict] += 1
    return counted


def _cell(cell: Any) -> dict[str, Any]:
    return {
        "name": cell.name,
        "printed": cell.printed,
        "measured": cell.measured,
        "stderr": cell.stderr,
        "verdict": cell.verdict,
    }


def exhibit_rows(name: str) -> str:
    """The recorded rows of an exhibit, as CSV."""
    from headwise.papers.catalogue import entries, record_path

    (entry,) = entries([name])
    if not entry.recorded:
        raise BadInputError(f"no rows of {name} are recorded", hint="run it first")
    return record_path(name, entry.recorded[-1]).read_text(encoding="utf-8")


def verdicts() -> list[dict[str, Any]]:
    """One line for each recorded exhibit: how many cells and claims agree."""
    lines = []
    for row in exhibits():
        if not row["recorded"]:
            continue
        for part in exhibit(row["exhibit"])["parts"]:
            held = sum(claim["holds"] for claim in part["claims"])
            lines.append(
                {
                    "exhibit": row["exhibit"],
                    "title": row["title"],
                    "scale": part["scale"],
                    **part["tally"],
                    "claims": len(part["claims"]),
                    "claims_held": held,
                    "verdict": part["verdict"],
                }
            )
    return lines


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV text."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
