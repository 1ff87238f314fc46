"""Draw advice.png: the rank of heads on the embedded digits before training, and the advice.

Run from anywhere, with headwise installed: python docs/figures/make_advice.py
It writes advice.png and the numbers drawn, advice.csv, beside this file.
"""

from __future__ import annotations

import csv
from pathlib import Path

from headwise.advice import Advice, advise
from headwise.advice.render.figure import figure
from headwise.advice.tokens.source import Reading, read_tokens

HERE = Path(__file__).parent


def rows(advice: Advice) -> list[dict[str, float | int | str]]:
    """One row per start and head dimension."""
    return [
        {"start": curve.start, "head_dim": dim, "mean": round(mean, 4), "half": round(half, 4)}
        for curve in advice.evidence.curves
        for dim, mean, half in zip(curve.head_dims, curve.mean, curve.half_width, strict=True)
    ]


def main() -> None:
    """Measure, write the numbers, draw."""
    advice = advise(read_tokens("digits", Reading()))
    found = rows(advice)
    with (HERE / "advice.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    figure(advice).savefig(HERE / "advice.png", dpi=160)


if __name__ == "__main__":
    main()
