"""Specs that differ in their rank alone, trained as one ensemble.

Heads times rank is the same for all of them, so their parameters stack. A GPU that a few small
models would leave idle is filled, and the answers are those of the single runs but for rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from headwise.errors import BadInputError
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.runs import Row
from headwise.training import train


def differing_in_rank(specs: Iterable[TrainNeighbours]) -> list[list[TrainNeighbours]]:
    """The specs in groups that can train together, in the order of their first.

    >>> specs = [TrainNeighbours(rank=r, layers=n) for n in (1, 3) for r in (1, 8)]
    >>> [[(s.layers, s.rank) for s in group] for group in differing_in_rank(specs)]
    [[(1, 1), (1, 8)], [(3, 1), (3, 8)]]
    """
    groups: dict[str, list[TrainNeighbours]] = {}
    for spec in specs:
        rest = {name: value for name, value in spec.content.items() if name != "rank"}
        groups.setdefault(json.dumps(rest, sort_keys=True), []).append(spec)
    return list(groups.values())


def ask_together(specs: Sequence[TrainNeighbours], on: str = "cpu") -> list[list[Row]]:
    """The rows of each spec of a group.

    >>> small = {"width": 4, "tokens": 3, "mlp_width": 8, "batch": 8, "sequences": 16}
    >>> specs = [TrainNeighbours(rank=r, steps=2, epoch=2, **small) for r in (1, 4)]
    >>> [rows[0]["heads"] for rows in ask_together(specs)]
    [4, 1]
    """
    if len(differing_in_rank(specs)) != 1:
        raise BadInputError(
            f"{len(specs)} specs differ in more than their rank",
            hint="take the groups that differing_in_rank gives",
        )
    builders = {str(spec.rank): spec.build for spec in specs}
    done = train(builders, specs[0].task, specs[0].settings(on))
    return [spec.rows_of(done.only(str(spec.rank))) for spec in specs]
