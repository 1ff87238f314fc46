"""Whether training was stable: how far validation accuracy falls while a model trains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from headwise.papers.kinds.trained_rows import FALL, fall
from headwise.papers.rank2026.accuracy_and_rank import Trained
from headwise.papers.rank2026.recipes import Family
from headwise.report import Table
from headwise.runs import Row

#: CIFAR-10 at width 384, with the losses that the rows of exhibits do not keep.
RECORDS = Path(__file__).parents[1] / "benchmarks/records"
WIDE, WIDE_NAME = "real_cifar10_384_*.jsonl", "CIFAR-10, width 384"


def unstable_part(families: Sequence[tuple[Trained, Family]]) -> str:
    """Return the section on falls while training, and on CIFAR-10 at width 384."""
    runs = {found.label(family): _rows(found, family) for found, family in families}
    wide = wide_rows()
    # Exhibits leave out a head dimension until both seeds are there; here every run counts.
    if len(wide) > len(runs.get(WIDE_NAME, ())):
        runs[WIDE_NAME] = wide
    table = Table.of(_falls(name, own) for name, own in runs.items())
    words = (
        "The largest fall of a run is what its validation accuracy loses while it trains, as a "
        f"share of its best before. A run that falls by more than {FALL:.0%} is unstable. Every "
        "run counts here, also at head dimensions with one seed."
    )
    parts = ["## Where training is unstable", words, table.markdown()]
    return "\n\n".join([*parts, *(_wide_parts(wide, runs) if wide else [])]) + "\n"


def among_all(name: str) -> str:
    """How many of all runs of a setting are unstable, if some head dimensions have one seed."""
    rows = wide_rows() if name == WIDE_NAME else []
    if not rows:
        return ""
    lost = sum(fall(row["curve_accuracy"]) > FALL for row in rows)
    return f" at head dimensions with two seeds ({lost} of {len(rows)} in all)"


def wide_rows() -> list[Row]:
    """The rows of CIFAR-10 at width 384, with their curves as the exhibits have them."""
    files = sorted(RECORDS.glob(WIDE))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return [row | {"curve_accuracy": [look[1] for look in row["curve"]]} for row in rows]


def _rows(found: Trained, family: Family) -> list[Row]:
    return [row for own in found.by_dim(family).values() for row in own]


def _falls(name: str, rows: Sequence[Row]) -> dict[str, str | int]:
    tested = [row["test_accuracy"] for row in rows if row["test_accuracy"] is not None]
    falls = [fall(row["curve_accuracy"]) for row in rows]
    return {
        "setting": name,
        "runs": len(rows),
        "unstable": sum(own > FALL for own in falls),
        "largest fall": f"{max(falls):.0%}",
        "test accuracy": f"{min(tested):.3f} to {max(tested):.3f}",
    }


def _wide_parts(wide: Sequence[Row], runs: dict[str, list[Row]]) -> list[str]:
    """What the curves of CIFAR-10 at width 384 show, in words and numbers."""
    table = Table.of(_wide_line(row) for row in wide)
    narrow = [
        row
        for name, own in runs.items()
        for row in own
        if name.startswith("CIFAR-10,") and row["width"] == 192
    ]
    return [
        "**CIFAR-10 at width 384.** The learning rate is the published 1e-3: it rises for "
        f"{wide[0]['warm_up_epochs']:g} epochs and then falls to 0. Losses are means over the "
        "epoch that ends there.",
        table.markdown(),
        " ".join(_curve_words(wide, narrow)),
    ]


def _wide_line(row: Row) -> dict[str, str | int | float | None]:
    before, after = _around_warm_up(row)
    top = max(after, key=lambda look: look[2])
    back = [look[0] for look in after if look[0] > top[0] and look[2] < before[-1][2]]
    rises = top[2] > before[-1][2]
    return {
        "heads": row["heads"],
        "seed": row["seed"],
        "test accuracy": round(row["test_accuracy"], 3),
        "diverged": "yes" if row["diverged"] else "no",
        f"loss, epoch {before[-1][0]:g}": round(before[-1][2], 3),
        "highest later": round(top[2], 3),
        "at epoch": int(top[0]),
        "below the first again at epoch": int(back[0]) if rises and back else None,
        "loss at the end": round(after[-1][2], 3),
    }


def _around_warm_up(row: Row) -> tuple[list[list[float]], list[list[float]]]:
    """The looks of a curve until the learning rate is highest, and after."""
    before = [look for look in row["curve"] if look[0] <= row["warm_up_epochs"]]
    return before, row["curve"][len(before) :]


def _curve_words(wide: Sequence[Row], narrow: Sequence[Row]) -> list[str]:
    around = [_around_warm_up(row) for row in wide]
    learn = sum(before[-1][2] < before[0][2] for before, _ in around)
    rise = sum(max(look[2] for look in after) > before[-1][2] for before, after in around)
    lost = sum(row["diverged"] for row in wide)
    fell = sum(fall(row["curve_accuracy"]) > FALL for row in narrow)
    return [
        f"{lost} of {len(wide)} runs diverged.",
        f"During the warm-up the loss falls in {learn} of {len(wide)} runs.",
        f"After it, when the learning rate is highest, the loss rises again in {rise} of "
        f"{len(wide)}; it falls as the rate does.",
        f"The same code, in bfloat16 and in ensembles, trained {len(narrow)} runs on CIFAR-10 at "
        f"width 192, of which {fell} are unstable"
        f"{', so neither is the cause alone' if not fell else ''}.",
        "The curves do not show whether a lower rate or float32 would help: no such run is "
        "recorded.",
    ]
