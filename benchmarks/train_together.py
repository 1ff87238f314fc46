"""Train what is missing of exhibits, all ranks or heads of a setting at once.

    python benchmarks/train_together.py heads2024/figure_rank_depth --device cuda --store STORE

This is ``headwise reproduce --scale gpu --device cuda`` without figures. ``--from-records`` counts
the rows that come with the package as answers; checkpoints lie beside the store.
"""

from __future__ import annotations

import argparse

from headwise.cli.progress_bar import progress_bar
from headwise.papers.reproduce import reproduce
from scripts import run_script


def main() -> None:
    """Train, and print what each exhibit has then."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exhibits", nargs="+", help="such as heads2024/figure_positions")
    parser.add_argument("--scale", default="gpu", help="default: gpu")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--store", required=True, help="where answers are looked up and kept")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing later")
    parser.add_argument("--from-records", action="store_true", help="train what has no row yet")
    parser.add_argument("--only", action="append", default=[], metavar="FIELD=VALUE")
    asked = parser.parse_args()
    found = reproduce(
        asked.exhibits,
        scale=asked.scale,
        device=asked.device,
        store=asked.store,
        seconds=asked.seconds,
        take_records=asked.from_records,
        only=dict(pair.split("=", 1) for pair in asked.only),
        progress=progress_bar(),
        command=f"headwise reproduce {' '.join(asked.exhibits)} --scale {asked.scale} "
        f"--device {asked.device}{''.join(f' --only {pair}' for pair in asked.only)}",
    )
    print(found.summary().text())


if __name__ == "__main__":
    run_script(main)
