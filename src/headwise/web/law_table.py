"""The law at every place of the sliders, computed beforehand and kept in law.json.

A causal law takes up to a second of processor time, and a moved slider must answer in a tenth.
The documentation site, which has no server, reads the same file.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import headwise
from headwise.errors import BadInputError
from headwise.mask_names import MaskName

FILE = Path(__file__).with_name("law.json")

#: Where the sliders can stand.
LENGTHS = [round(2 ** (place / 2)) for place in range(4, 41)]
HEAD_DIMS = sorted({round(2 ** (place / 4)) for place in range(37)})
PERCENT = list(range(50, 100, 5))


def answer(length: int, mask: MaskName, percent: int, head_dim: int) -> dict[str, Any]:
    """The law at a length, at one head dimension, and both kinds of saturation.

    ``critical_head_dim`` reaches a share of the barrier. From ``gain_head_dim`` on, 16 more
    dimensions gain at most 0.01: the rank paper's own rule, which has no mask.

    Args:
        length: Number of tokens.
        mask: "none" or "causal".
        percent: The share of the barrier that is enough.
        head_dim: The head dimension of the slider.

    Returns:
        The answer, from the table if it is there.
    """
    known = stored().get(f"{length} {mask}")
    if known is None or percent not in PERCENT or head_dim not in HEAD_DIMS:
        known = computed(length, mask, [percent], [head_dim])
        critical, here = known["critical"][0], known["at"][0]
    else:
        critical = known["critical"][PERCENT.index(percent)]
        here = known["at"][HEAD_DIMS.index(head_dim)]
    return {
        "length": length,
        "mask": mask,
        "fraction": percent / 100,
        "head_dim": known["head_dim"],
        "ratio": known["ratio"],
        "barrier": known["barrier"],
        "critical_head_dim": critical,
        "gain_head_dim": known["gain_head_dim"],
        "at": here,
    }


def computed(
    length: int,
    mask: MaskName,
    percents: list[int] = PERCENT,
    head_dims: list[int] = HEAD_DIMS,
) -> dict[str, Any]:
    """The same, computed."""
    from headwise.theory.law_curve import predicted_critical

    whole = headwise.law(length, None, mask, percents[-1] / 100)
    at = [headwise.expected_rank(length, dim, mask, method="instant").ratio for dim in head_dims]
    return {
        "head_dim": [row.head_dim for row in whole.rows],
        "ratio": [round(row.ratio, 6) for row in whole.rows],
        "barrier": round(whole.barrier, 6),
        "critical": [predicted_critical(length, percent / 100, mask) for percent in percents],
        "gain_head_dim": _gain_head_dim(length) if mask == "none" else None,
        "at": [round(ratio, 6) for ratio in at],
    }


@cache
def stored() -> dict[str, Any]:
    """The entries of the table by length and mask; empty while it is being computed."""
    return json.loads(FILE.read_text(encoding="utf-8"))["answers"] if FILE.exists() else {}


def _gain_head_dim(length: int) -> int | None:
    from headwise.theory.scaling import gain_head_dim

    try:
        return gain_head_dim(length)
    except BadInputError:  # no step gains that much: there is nothing to saturate
        return None
