"""What each view shows, by the same functions as the command and Python."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import headwise
from headwise.errors import BadInputError, ParameterError
from headwise.mask_names import MaskName

#: Longest head that is simulated for its picture.
MOST_PICTURED = 256

#: Standard deviation of the logits: with weights N(0, 1) it is the width of the model.
SHARPNESS = 384.0

_reading = threading.Lock()

#: Models are drawn if their width is within this many doublings.
NEAR = 0.5

#: Known models as points of the bounds: width, rank of a head, number of heads.
KNOWN_MODELS = (
    ("BERT-base", 768, 64, 12),
    ("GPT-2", 768, 64, 12),
    ("SmolLM2-135M", 576, 64, 9),
    ("Llama 2 7B", 4096, 128, 32),
    ("Llama 3 70B", 8192, 128, 64),
    ("Gemma 3 270M", 640, 256, 4),
)


@lru_cache(maxsize=64)
def simulated_head(length: int, head_dim: int, mask: MaskName, seed: int) -> dict[str, Any]:
    """A random head at the paper's setting: its attention, its rank, and the columns it uses."""
    import torch

    from headwise.randomness import stream
    from headwise.spectra import LogWeights, count

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
    found = count(LogWeights(logits))
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
    from headwise.theory.heads_by_rank import log_heads_by_rank

    places = {round(2 ** (k / 2)) for k in range(2 * 14)} | {width // 2}
    ranks = sorted(places & set(range(1, width)))
    models = known_models()
    return {
        "width": width,
        "error": error,
        "rank": ranks,
        "log10_heads": [log / math.log(10) for log in log_heads_by_rank(width, ranks, error)],
        "models": models,
        "near": [one for one in models if abs(math.log2(one["width"] / width)) <= NEAR],
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


def exhibits() -> list[dict[str, Any]]:
    """Every exhibit with its title and scales; nothing is loaded."""
    from headwise.papers.reproduce import list_exhibits

    return list_exhibits()


@lru_cache(maxsize=128)
def exhibit(name: str) -> dict[str, Any]:
    """One exhibit from its records: verdict, claims, figures and cells."""
    found = headwise.reproduce(name, from_records=True).exhibits
    return {"name": name, "parts": [_part(one) for one in found]}


def stored_exhibit(name: str, scale: str, store: str) -> dict[str, Any]:
    """One exhibit at one scale, from what the store holds."""
    from headwise.papers.catalogue import chosen
    from headwise.papers.computing import scale_named, store_exists
    from headwise.papers.reproduction import Wanted, from_store
    from headwise.runs import Store

    if not store_exists(store):
        raise BadInputError(f"nothing of {name} is stored yet", hint="run it first")
    wanted = Wanted(chosen([name])[0], scale_named(scale))
    with Store.open(store) as opened:
        return {"name": name, "parts": [_part(from_store(opened, wanted))]}


def _part(one: Any) -> dict[str, Any]:
    """An exhibit at one scale, with its figures as plotly draws them."""
    from headwise.papers.comparison import verdict
    from headwise.web.figures import figures

    shown = one.shown
    return {
        "scale": one.wanted.scale.value,
        "title": one.title,
        "source": one.wanted.exhibit.source,
        "command": one.wanted.command,
        "problem": one.problem,
        "sources": list(one.sources),
        "verdict": verdict(shown.cells, one.why_uncompared),
        "tally": _tally(shown.cells),
        "disagreement": disagreement(shown.cells, shown.claims),
        "cells": [_cell(cell) for cell in sorted(shown.cells, key=_worst_first)],
        "claims": [{"words": c.words, "holds": c.holds, "source": c.source} for c in shown.claims],
        "remarks": list(shown.remarks),
        "tables": [
            {
                "title": table.title,
                "columns": table.columns,
                "rows": [[_rounded(value) for value in row] for row in table.rows],
            }
            for table in shown.tables
        ],
        "figures": figures(shown.panels),
    }


def disagreement(cells: Iterable[Any], claims: Iterable[Any]) -> str:
    """What differs from the paper, in words; empty if nothing does."""
    differing = [cell for cell in cells if cell.verdict == "differs"]
    higher = sum(cell.measured > cell.printed for cell in differing)
    words = []
    if differing:
        sides = [f"{higher} higher", f"{len(differing) - higher} lower"]
        words.append(f"Values that differ from the paper: {' and '.join(sides)}.")
        worst = max(differing, key=lambda cell: abs(cell.difference))
        words.append(
            f"The farthest is {worst.name}: {_rounded(worst.measured)}, published "
            f"{_rounded(worst.printed)}."
        )
    failed = [claim.words for claim in claims if not claim.holds]
    words += [f"Claim that does not hold: {claim}." for claim in failed]
    return " ".join(words)


def _worst_first(cell: Any) -> int:
    return ("differs", "undecided", "agrees").index(cell.verdict)


def _rounded(value: Any) -> str:
    """A cell of a table; numbers in four digits."""
    return f"{float(f'{value:.4g}'):.15g}" if isinstance(value, float) else str(value)


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
        "statistic": cell.statistic,
    }


def exhibit_rows(name: str, scale: str = "") -> str:
    """The recorded rows of an exhibit at a scale, as CSV; by default the largest."""
    from headwise.papers.catalogue import entries, record_path

    (entry,) = entries([name])
    if not entry.recorded or (scale and scale not in entry.recorded):
        raise BadInputError(f"no rows of {name} are recorded", hint="use the rows of the store")
    return record_path(name, scale or entry.recorded[-1]).read_text(encoding="utf-8")


def verdicts() -> list[dict[str, Any]]:
    """One line for each recorded exhibit and scale: how many cells and claims agree."""
    with _reading:  # the first look takes seconds: those who come meanwhile wait for it
        return _verdicts()


@cache
def _verdicts() -> list[dict[str, Any]]:
    recorded = [row for row in exhibits() if row["recorded"]]
    return [_verdict(row, part) for row in recorded for part in exhibit(row["exhibit"])["parts"]]


def _verdict(row: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """How many values agree of all that are published, or claims if none is."""
    # The share leaves out what is undecided: it sorts exhibits by how well they are reproduced.
    tally, claims = part["tally"], part["claims"]
    held, decided = sum(claim["holds"] for claim in claims), tally["agrees"] + tally["differs"]
    values = sum(tally.values())
    agreed, compared = (tally["agrees"], decided) if values else (held, len(claims))
    return {
        "exhibit": row["exhibit"],
        "title": row["title"],
        "from": "ours" if part["source"] == "ours" else "printed",
        "scale": part["scale"],
        **tally,
        "claims": len(claims),
        "claims_held": held,
        "failed": len(claims) - held,
        "compared": "values" if values else "claims",
        "agreed": agreed,
        "total": values or len(claims),
        "agreement": agreed / compared if compared else None,
        "verdict": part["verdict"],
    }


def warm_up() -> None:
    """Import and compute what the views ask for first, while nobody waits yet."""
    known_models()
    simulated_head(64, 16, "none", 0)
    verdicts()
