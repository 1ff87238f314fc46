"""Draw float32_trap.png: the rank of the same random heads, counted in three precisions.

Run from anywhere, with headwise installed: python docs/figures/make_float32_trap.py
It writes float32_trap.png and the numbers drawn, float32_trap.csv, beside this file.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import logits
from headwise.spectra import measure

HERE = Path(__file__).parent
TOKENS, WIDTH, HEADS, SEED = 200, 960, 16, 0
HEAD_DIMS = (2, 4, 8, 16, 32, 48, 64, 80, 96)
EPSILON = 1e-8

# float32 and bfloat16 nearly coincide: a hollow ring around a small square shows both.
CURVES = {
    "bfloat16": {
        "label": "attention rounded to bfloat16, decomposed in float32",
        "linestyle": "none",
        "marker": "o",
        "markersize": 11,
        "markerfacecolor": "none",
        "color": "0.5",
    },
    "float32": {
        "label": "everything in float32",
        "linestyle": "--",
        "marker": "s",
        "markersize": 4,
        "color": "0.35",
    },
    "float64": {
        "label": "float64, counted by headwise",
        "linestyle": "-",
        "marker": "o",
        "color": "0.0",
    },
}


Row = dict[str, float | int | str]


def svd_ranks(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """What a plain singular value decomposition in float32 counts: a number, sure of itself."""
    found = (torch.linalg.svdvals(matrices.float()) >= EPSILON).sum(-1)
    return found, found


def ranks(head_dim: int) -> dict[str, tuple[Tensor, Tensor]]:
    """The least and greatest rank of each of the same heads, by precision."""
    queries, keys = gaussian_heads(HEADS, TOKENS, width=WIDTH, head_dim=head_dim, seed=SEED)
    source = logits(queries, keys)
    single = queries.float() @ keys.float().mT / head_dim**0.5
    certified = measure(source).rank
    return {
        "float64": (certified.low, certified.high),
        "float32": svd_ranks(torch.softmax(single, dim=-1)),
        "bfloat16": svd_ranks(torch.softmax(source.values, dim=-1).bfloat16()),
    }


def measured() -> list[Row]:
    """One row per precision and head dimension: rank / n, averaged over the heads."""
    return [
        {
            "precision": precision,
            "head_dim": head_dim,
            "low": round(float(low.double().mean()) / TOKENS, 5),
            "high": round(float(high.double().mean()) / TOKENS, 5),
            "std": round(float(low.double().std()) / TOKENS, 5),
            "intervals": int((low < high).sum()),
        }
        for head_dim in HEAD_DIMS
        for precision, (low, high) in ranks(head_dim).items()
    ]


def draw(rows: list[Row]) -> None:
    """The figure, readable without colour; bars are the spread over the heads."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for precision, style in CURVES.items():
        own = [row for row in rows if row["precision"] == precision]
        axes.errorbar(
            [row["head_dim"] for row in own],
            [row["low"] for row in own],
            [row["std"] for row in own],
            capsize=2,
            **style,
        )
    axes.set(
        xlabel="head dimension",
        ylabel="rank of the attention matrix / number of tokens",
        ylim=(0, 1.04),
        xlim=(0, 100),
        title=f"The same {HEADS} random heads, {TOKENS} tokens: "
        "how many singular values are at least 1e-8?",
    )
    axes.title.set_fontsize("medium")
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(HERE / "float32_trap.png", dpi=160, metadata={"Software": None})


def main() -> None:
    """Measure, write the numbers, draw them: about a minute."""
    rows = measured()
    with (HERE / "float32_trap.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows)


if __name__ == "__main__":
    main()
