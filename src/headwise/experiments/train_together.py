"""Specs that differ in one field alone, their rank or their heads, trained as one ensemble.

Heads times rank is the same for all of them, so their parameters stack. A GPU that a few small
models would leave idle is filled, and the answers are those of the single runs but for rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from headwise.errors import BadInputError
from headwise.experiments.training_run import TrainingRun
from headwise.runs import Row
from headwise.training import Saving, train
from headwise.training.curve import Sink, nowhere

Run = TypeVar("Run", bound=TrainingRun)


def stackable(specs: Iterable[Run]) -> list[list[Run]]:
    """The specs in groups that can train together, in the order of their first.

    >>> from headwise.experiments.train_neighbours import TrainNeighbours
    >>> specs = [TrainNeighbours(rank=r, layers=n) for n in (1, 3) for r in (1, 8)]
    >>> [[(s.layers, s.rank) for s in group] for group in stackable(specs)]
    [[(1, 1), (1, 8)], [(3, 1), (3, 8)]]
    """
    groups: dict[str, list[Run]] = {}
    for spec in specs:
        rest = {name: value for name, value in spec.content.items() if name != spec.stacks_over}
        groups.setdefault(json.dumps(rest, sort_keys=True), []).append(spec)
    return list(groups.values())


def ask_together(
    specs: Sequence[TrainingRun],
    on: str = "cpu",
    *,
    folder: Path | None = None,
    sink: Sink = nowhere,
) -> list[list[Row]]:
    """The rows of each spec of a group.

    With a folder, a checkpoint is kept there until the group is trained, and a group that was
    stopped goes on from it. The curve goes to the sink as it is made.

    >>> from headwise.experiments.train_neighbours import TrainNeighbours
    >>> small = {"width": 4, "tokens": 3, "mlp_width": 8, "batch": 8, "sequences": 16}
    >>> specs = [TrainNeighbours(rank=r, steps=2, epoch=2, **small) for r in (1, 4)]
    >>> [rows[0]["heads"] for rows in ask_together(specs)]
    [4, 1]
    """
    if len(stackable(specs)) != 1:
        raise BadInputError(
            f"{len(specs)} specs differ in more than their {specs[0].stacks_over}",
            hint="take the groups that stackable gives",
        )
    builders = {spec.key: spec.build for spec in specs}
    saving = None if folder is None else Saving.in_folder(folder, f"{' '.join(builders)} on {on}")
    done = train(builders, specs[0].task, specs[0].settings(on), sink=sink, saving=saving)
    rows = [spec.rows_of(done.only(spec.key)) for spec in specs]
    if saving is not None:
        saving.path.unlink(missing_ok=True)
    return rows
