"""Draw the figures of docs/theory.md: python docs/make_figures.py.

Simulated points come from benchmarks/records/law_cpu_202611.json; curves are computed here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from headwise.theory.harmonic_bound import heads_needed
from headwise.theory.law_formula import critical_head_dim, law_share
from headwise.theory.scaling import saturation_constant, scaling

HERE = Path(__file__).parent
RECORD = HERE.parent / "benchmarks" / "records" / "law_cpu_202611.json"
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
MARKERS = "osD^vP"
GREYS = ("0.0", "0.25", "0.45", "0.6", "0.3", "0.1")


def law_curves(record: dict) -> Figure:
    """L against the head dimension for several lengths, with simulated points."""
    figure, axes = _figure()
    dims = np.unique(np.geomspace(1, 1024, 60).round())
    simulated = record["agreement"] + record["small_dims"]
    for index, n in enumerate((32, 512, 4096, 16384)):
        axes.plot(dims, law_share(n, dims), linestyle=STYLES[index], color=GREYS[index])
        rows = [row for row in simulated if row["length"] == n]
        axes.errorbar(
            [row["head_dim"] for row in rows],
            [row["simulated"] for row in rows],
            yerr=[3 * row["stderr"] for row in rows],
            fmt=MARKERS[index],
            color=GREYS[index],
            markersize=4.5,
            label=f"{n} tokens",
        )
    axes.axhline(1 - math.exp(-1), color="0.7", linewidth=0.8)
    axes.text(1.05, 1 - math.exp(-1) + 0.008, "1 − 1/e: barrier for n → ∞", color="0.4", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("head dimension")
    axes.set_ylabel("expected hardmax rank / length")
    axes.set_title("Lines: the law L. Points: simulation, three standard errors.", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    return figure


def critical_dims(_: dict) -> Figure:
    """The head dimension at 90 % of the barrier: log n on the left, t⁴/4 and (log n)² beside it."""
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    lengths = 2 ** np.arange(5, 31)
    dims = np.array([critical_head_dim(int(n)) for n in lengths])
    logs = np.log(lengths)
    early = lengths <= 256
    slope, offset = np.polyfit(logs[early], dims[early], 1)
    _law_points(left, lengths, dims)
    left.plot(
        lengths, slope * logs + offset, "--", color="0.45", label="a·log n + b, fitted n ≤ 256"
    )
    left.set_title("log n: fits short sequences, then fails", fontsize=10)
    _law_points(right, lengths, dims)
    square = (logs**2 * dims).sum() / (logs**4).sum()
    right.plot(lengths, square * logs**2, ":", color="0.45", label="c·(log n)², fitted to all")
    t4 = [scaling(int(n)).quantile ** 4 / 4 * saturation_constant(0.9) for n in lengths]
    right.plot(lengths, t4, "-", color="0.6", label="5.28·t⁴/4, nothing fitted")
    right.set_title("t⁴/4 fits throughout; (log n)² is its limit", fontsize=10)
    left.set_ylabel("head dimension at 90 % of the barrier")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("length")
        axes.legend(frameon=False, loc="upper left")
    return figure


def heads_against_error(_: dict) -> Figure:
    """The least number of heads against the error, for several ranks at width 64."""
    figure, axes = _figure()
    errors = np.geomspace(0.02, 0.4, 40)
    for index, rank in enumerate((1, 4, 16, 32, 48)):
        heads = [heads_needed(64, rank, error) for error in errors]
        axes.plot(
            errors, heads, linestyle=STYLES[index], color=GREYS[index], label=f"r/d = {rank}/64"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.4], labels=["0.02", "0.05", "0.1", "0.2", "0.4"])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("mean squared error on nearest neighbours")
    axes.set_ylabel("heads needed, at least")
    axes.set_title("Width 64, value matrices of any form", fontsize=10)
    axes.legend(frameon=False)
    return figure


def softmax_prediction(record: dict) -> Figure:
    """Predicted and simulated ε-rank of softmax heads against the number of kept weights."""
    figure, axes = _figure()
    for index, dim in enumerate((16, 64, 256)):
        rows = [
            row
            for row in record["softmax"]
            if (row["length"], row["head_dim"], row["epsilon"]) == (200, dim, 1e-8)
        ]
        kept = [row["kept"] - 1 for row in rows]
        axes.plot(
            kept, [row["predicted"] for row in rows], linestyle=STYLES[index], color=GREYS[index]
        )
        axes.errorbar(
            kept,
            [row["simulated"] for row in rows],
            yerr=[3 * row["stderr"] for row in rows],
            fmt=MARKERS[index],
            color=GREYS[index],
            label=f"head dimension {dim}",
        )
    axes.axvspan(1, 100, color="0.93", zorder=0)
    axes.text(1.15, 0.43, "outside the stated range", color="0.35", fontsize=9)
    axes.set_xlim(0.02, 60)
    axes.set_xscale("log")
    axes.set_xlabel("weights per row beside the largest that exceed ε times it")
    axes.set_ylabel("ε-rank / length")
    axes.set_title("200 tokens, ε = 1e-8. Lines: prediction. Points: simulation.", fontsize=10)
    axes.legend(frameon=False, loc="upper left")
    return figure


def _law_points(axes: Axes, lengths: np.ndarray, dims: np.ndarray) -> None:
    axes.plot(lengths, dims, "o", color="black", markersize=4, label="by the law L")


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    return figure, figure.subplots()


def main() -> None:
    """Draw every figure, as svg for the page."""
    # Fixed ids and no date, so that the same figure is the same file.
    matplotlib.rcParams["svg.hashsalt"] = "headwise"
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    for draw in (law_curves, critical_dims, heads_against_error, softmax_prediction):
        file = HERE / "figures" / f"{draw.__name__}.svg"
        draw(record).savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
