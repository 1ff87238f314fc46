"""Draw reduce.svg and reduce_slack.svg from the recorded rows of the reduction benchmarks.

Run from the root of the repository: python docs/figures/make_reduce.py
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

from headwise.report import Curve, Line, Panel, draw

HERE = Path(__file__).parent
RECORDS = HERE.parent.parent / "benchmarks" / "records"

#: The methods drawn, and their names in the legend.
SHOWN = {
    "ours": "headwise",
    "one_rank": "headwise, one rank for all",
    "weighted_svd": "SVD weighted by activations",
    "eigen": "Eigen Attention",
    "thin_keys": "thin keys",
    "svd": "SVD of the weights",
}


def rows(name: str) -> list[dict]:
    """Read one record."""
    return [json.loads(line) for line in (RECORDS / name).read_text().splitlines()]


def panel(title: str, found: list[dict], label: str, sign: float = 1.0) -> Panel:
    """Return what cuts cost against the size, with the deviation over calibration samples."""
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for row in found:
        values[row["method"], row["share"]].append(sign * row["above"])
    curves = []
    for method, name in SHOWN.items():
        shares = sorted(share for own, share in values if own == method)
        if not shares:
            continue
        samples = [values[method, share] for share in shares]
        curves.append(
            Curve(
                name,
                Line(tuple(100 * s for s in shares), tuple(mean(each) for each in samples)),
                spread=tuple(stdev(each) if len(each) > 1 else 0.0 for each in samples),
            )
        )
    return Panel(title, "KV bytes, % of the original", label, tuple(curves), y_scale="log")


def main() -> None:
    """Draw both figures."""
    language = panel(
        "Language model", rows("reduce_lm_h200_202611.jsonl"), "loss above the original, nats"
    )
    draw([language]).savefig(HERE / "reduce.svg")
    slack = rows("reduce_slack_cpu_202611.jsonl")
    panels = []
    for title, x_label, x in (
        ("By the scan", "rank in the scan / head dimension", _scanned),
        ("By the prediction", "predicted squared change", lambda row: row["predicted"]),
    ):
        curves = []
        for kind in ("keys", "values"):
            own = [row for row in slack if row["kind"] == kind and row["share"] == 0.5]
            line = Line(tuple(map(x, own)), tuple(row["measured"] for row in own))
            curves.append(Curve(f"{kind} halved in one layer", line, style="rings"))
        scale = "linear" if x is _scanned else "log"
        label = "measured squared change"
        panels.append(Panel(title, x_label, label, tuple(curves), x_scale=scale, y_scale="log"))
    draw(panels).savefig(HERE / "reduce_slack.svg")


def _scanned(row: dict) -> float:
    return row["scanned_rank"] / row["head_dim"]


if __name__ == "__main__":
    main()
