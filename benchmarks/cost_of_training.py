"""What the trained exhibits of the heads paper would cost on one H200, cell by cell.

    python benchmarks/cost_of_training.py --scale gpu [EXHIBIT]

Seconds are estimated from FLOPs and bytes (headwise.experiments.training_cost), before anything is
run; cells come in the order in which they are run, cheap ones first.
"""

from __future__ import annotations

import argparse

from headwise.experiments.training_cost import run_seconds
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Scale
from headwise.report import Table


def main() -> None:
    """Print the table of one scale: totals for every exhibit, cells of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exhibit", nargs="?", help="such as heads2024/figure_positions: its cells")
    parser.add_argument("--scale", type=Scale, default=Scale.GPU, help="default: gpu")
    asked = parser.parse_args()
    scale, only, seen = asked.scale, asked.exhibit, set[str]()
    totals = []
    for exhibit in chosen(["heads2024"]):
        if scale not in exhibit.scales or (only and exhibit.name != only):
            continue
        new = [spec for spec in exhibit.specs(scale) if spec.key not in seen]
        seen |= {spec.key for spec in new}
        costs = [run_seconds(spec) for spec in new]
        totals.append((exhibit.name, len(new), round(sum(costs)), round(max(costs, default=0))))
        if only:
            cells = zip((spec.label for spec in new), map(round, costs), strict=True)
            print(Table(("cell", "seconds"), tuple(cells)).markdown(), end="\n\n")
    totals.append(("together", *(sum(row[i] for row in totals) for i in (1, 2)), None))
    print(
        Table(("exhibit", "own cells", "seconds", "most expensive cell"), tuple(totals)).markdown()
    )


if __name__ == "__main__":
    main()
