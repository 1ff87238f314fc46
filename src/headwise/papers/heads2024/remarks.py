"""What stands in words beside the trained figures: shortened, left out, nothing learnt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headwise.papers.exhibit import Answers, Scale
from headwise.papers.heads2024.trained import ends_early, shown_field
from headwise.papers.trained_rows import Place, survivors
from headwise.runs import Row


def schedule_remarks(answers: Answers, printed: str) -> tuple[str, ...]:
    """What was shortened against the paper, in words."""
    if answers.scale is Scale.PAPER:
        return ()
    steps = sorted({row["steps"] for row in answers.rows() if "steps" in row})
    seeds = sorted({row["seed"] for row in answers.rows() if "steps" in row})
    rates = sorted({row["learning_rate"] for row in answers.rows() if "steps" in row})
    told = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    some = " or ".join(f"{one:g}" for one in rates)
    rate = some if len(rates) < 3 else f"{rates[0]:g} to {rates[-1]:g}"
    batches = sorted({row["batch"] for row in answers.rows() if "steps" in row})
    batch = f"{batches[0]}" if len(batches) == 1 else f"{batches[0]} to {batches[-1]}"
    return (
        f"The schedule is shortened: {told} steps of {batch} sequences at rate {rate} and "
        f"{len(seeds)} seeds, where the paper has {printed}. Losses are those of shorter training, "
        "and differences from print are expected.",
    )


def early_remark(rows: Iterable[Row]) -> tuple[str, ...]:
    """Which runs have no best training loss to speak of, and what is shown of them.

    >>> early_remark([{"protocol": "fixed", "steps": 100, "epoch": 100}])[0][:44]
    'Runs of 100 steps, in epochs of 100, have no'
    """
    early = {
        (row["steps"], row["epoch"])
        for row in rows
        if row["protocol"] == "fixed" and ends_early(row)
    }
    return tuple(
        f"Runs of {steps:,} steps, in epochs of {epoch:,}, have no epoch near their end: the test "
        "loss stands for their best training loss."
        for steps, epoch in sorted(early)
    )


#: Above so many times the trivial loss a run has learnt nothing, and is near zero output.
NOTHING_LEARNT = 1.02


def stuck_remark(rows: Iterable[Row], *fields: str) -> tuple[str, ...]:
    """Which runs ended above what is possible without attention, by these fields of their rows.

    >>> row = {"layers": 3, "rank": 8, "seed": 1, "protocol": "fresh", "trivial": 0.89}
    >>> row |= {"test_loss": 1.0, "best_train_loss": 1.0, "steps": 9, "epoch": 3}
    >>> stuck_remark([row, row | {"test_loss": 0.5}], "layers", "rank")[0][:69]
    '1 of 2 runs ended above the trivial loss: layers 3, rank 8, fresh, se'
    """
    rows = list(rows)
    stuck = [row for row in survivors(rows) if _learnt_nothing(row)]
    if not stuck:
        return ()
    told = "; ".join(_named(row, fields) for row in stuck)
    return (
        f"{len(stuck)} of {len(rows)} runs ended above the trivial loss: {told}. "
        "Nothing was learnt there; they count in means and bands.",
    )


def _named(row: Row, fields: Sequence[str]) -> str:
    values = [f"{field} {row[field]}".removesuffix(".0") for field in fields]
    return ", ".join([*values, row["protocol"], f"seed {row['seed']}"])


def _learnt_nothing(row: Row) -> bool:
    loss = row[shown_field([row], row["protocol"])]
    return loss is not None and loss > NOTHING_LEARNT * row["trivial"]


def left_out_remark(
    printed: Mapping[str, Iterable[Place]], trained: Mapping[str, Iterable[Place]]
) -> tuple[str, ...]:
    """Printed settings that no run was made for, as ranks under a name.

    >>> left_out_remark({"N = 4": (1, 8), "N = 16": (1,)}, {"N = 4": (8,)})
    ('Printed, and not trained here: N = 4 at r = 1; N = 16 at every r.',)
    """
    told = []
    for name, ranks in printed.items():
        known, wanted = set(trained.get(name, ())), list(ranks)
        missing = [f"{rank:g}" for rank in wanted if rank not in known]
        if missing:
            every = len(missing) == len(wanted)
            told.append(f"{name} at " + ("every r" if every else f"r = {', '.join(missing)}"))
    return (f"Printed, and not trained here: {'; '.join(told)}.",) if told else ()
