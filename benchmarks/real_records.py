"""Put rows of ``benchmarks.real_data`` into a store, as answers of the rank paper's exhibits.

    python -m benchmarks.real_records ROWS.jsonl ... --store STORE [--scale gpu]

A row answers a spec if every setting that both state is equal; rows that answer none are named.
``benchmarks/record_exhibits.py STORE --scale gpu --part`` then records what the store holds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from headwise.experiments.train_classifier import TrainClassifier
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Scale
from headwise.runs import Answer, Provenance, Row, Store
from headwise.runs.provenance import seed_of

#: Settings of a row, and what the spec calls them.
SETTINGS = {
    "dataset": "dataset",
    "epochs": "epochs",
    "batch": "batch",
    "rate": "learning_rate",
    "warm_up_epochs": "warm_up_epochs",
    "weight_decay": "weight_decay",
    "label_smoothing": "label_smoothing",
    "width": "width",
    "heads": "heads",
    "head_dim": "head_dim",
    "depth": "depth",
    "mlp_width": "mlp_width",
    "dtype": "dtype",
}

#: Numbers of a row that an answer has under the same name.
NUMBERS = (
    "seed",
    "test_accuracy",
    "validation_accuracy",
    "parameters",
    "attention_parameters",
    "trained_on",
    "validated_on",
    "tested_on",
)


def questions(scale: Scale) -> list[TrainClassifier]:
    """Every classifier that an exhibit trains at a scale, each once."""
    specs = [spec for exhibit in chosen(["rank2026"]) for spec in _asked(exhibit, scale)]
    return list({spec.key: spec for spec in specs}.values())


def _asked(exhibit: Any, scale: Scale) -> list[TrainClassifier]:
    offered = exhibit.specs(scale) if scale in exhibit.scales else []
    return [spec for spec in offered if isinstance(spec, TrainClassifier)]


def answers(spec: TrainClassifier, rows: Iterable[Row]) -> list[Row]:
    """The rows that trained this spec, one for each of its seeds; none if a seed is missing."""
    wanted = spec.content
    mine = {
        row["seed"]: row
        for row in rows
        if all(row[name] == wanted[field] for name, field in SETTINGS.items())
        and _samples(row) == _samples_of(spec)
    }
    return [mine[seed] for seed in spec.seeds] if set(spec.seeds) <= mine.keys() else []


def _samples(row: Row) -> int:
    return row["trained_on"] + row["validated_on"]


def _samples_of(spec: TrainClassifier) -> int:
    from headwise.data.classification import CLASSES, PUBLISHED

    name = spec.content["dataset"]
    return PUBLISHED[name] if spec.per_class is None else CLASSES[name] * spec.per_class


def answer(spec: TrainClassifier, rows: Sequence[Row]) -> Answer:
    """Rows as the answer of their spec, with what made them."""
    first = rows[0]
    found = Provenance(
        code=first["code"],
        torch=first["torch"],
        device=f"cuda ({first['device']})" if "NVIDIA" in first["device"] else first["device"],
        dtype=first["dtype"],
        # The time of an ensemble is shared out equally among its members.
        seconds=round(len(rows) * first["seconds"] / first["members"], 1),
        command=first["command"],
        seed=seed_of(spec.content),
    )
    return Answer(spec.key, tuple(map(_as_answered, rows)), found)


def _as_answered(row: Row) -> Row:
    looks = row["curve"]
    return {
        **{name: row[name] for name in NUMBERS},
        # Where a run fell is not in its row; the last epoch that was looked at is.
        "diverged_at": None if not row["diverged"] else int(looks[-1][0]),
        "curve_epoch": [look[0] for look in looks],
        "curve_accuracy": [None if look[1] is None else round(look[1], 5) for look in looks],
    }


def main() -> int:
    """Store what answers something, and name what does not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="+", type=Path, help="JSON lines of benchmarks.real_data")
    parser.add_argument("--store", required=True, help="a path, or an SQLAlchemy URL")
    parser.add_argument("--scale", choices=list(Scale), default=Scale.GPU)
    given = parser.parse_args()
    rows = [json.loads(line) for path in given.rows for line in path.read_text().splitlines()]
    used: list[Row] = []
    with Store.open(given.store) as store:
        for spec in questions(Scale(given.scale)):
            if mine := answers(spec, rows):
                store.put(spec, answer(spec, mine))
                used += mine
    print(f"{len(used)} of {len(rows)} rows answer a spec")
    for row in rows:
        if row not in used:
            print("left out:", {name: row[name] for name in ("seed", *SETTINGS)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
