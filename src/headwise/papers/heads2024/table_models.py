"""The survey of models: their rank, their number of heads, and the bound for these."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwise.experiments.bound_heads import BoundHeads
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.printed import printed_table
from headwise.report import Table
from headwise.runs import Spec


def heads_of(formula: str, width: int, rank: int) -> int:
    """Return the number of heads, which the survey writes as a multiple of d/r."""
    found = re.fullmatch(r"(\d*)d/(\d*)r", formula)
    if found is None:
        raise ValueError(f"{formula!r} is no multiple of d/r")
    above, below = (int(part or 1) for part in found.groups())
    return above * width // (below * rank)


def _spec(row: dict[str, str]) -> BoundHeads:
    width, rank = int(row["width"]), int(row["rank"])
    return BoundHeads(width=width, rank=rank, heads=heads_of(row["heads"], width, rank))


def _questions() -> list[Spec]:
    """Return a spec for each model; those of equal width, rank and number of heads share one."""
    return [_spec(row) for row in printed_table("heads2024_models")]


def _present(answers: Answers) -> Presentation:
    found = {record.key: record.rows[0] for record in answers.records}
    rows = []
    for row in printed_table("heads2024_models"):
        spec = _spec(row)
        bound = found[spec.key]
        rows.append(
            {
                "model": row["model"],
                "year": int(row["year"]),
                "d": spec.width,
                "layers": int(row["layers"]),
                "r": spec.rank,
                "heads H": f"{row['heads']} = {spec.heads}",
                "least error of one such layer": round(bound["bound"], 3),
                "heads of this rank for error 0.1": f"10^{bound['log10_heads_needed']:.1f}",
            }
        )
    bounds = [row["least error of one such layer"] for row in rows]
    return Presentation(
        tables=(Table.of(rows, title="Models, and what their heads can do alone"),),
        claims=_claims(),
        uncompared="the survey is the input; nothing is measured",
        remarks=(
            f"With about d/r heads the least error on the nearer of two neighbours is "
            f"{min(bounds):.3f} to {max(bounds):.3f} for every model: with r so far below d the "
            "standard number of heads has degree 1 of the target and hardly more. The bound "
            "is about one layer on one task, with any values and any weights, not about a whole "
            "model.",
        ),
    )


def _claims() -> tuple[Claim, ...]:
    """Return what the talk says of its own table, and what we add."""
    listed = printed_table("heads2024_models")
    usual = sum(row["heads"] == "d/r" for row in listed)
    return (
        Claim(
            f"most models have d/r heads ({usual} of {len(listed)})",
            2 * usual > len(listed),
            "survey of models, which says everyone; threshold of one half chosen by us",
        ),
        Claim(
            "ranks are of the order of 100, from 50 to 300",
            all(50 <= int(row["rank"]) <= 300 for row in listed),
            "survey of models; thresholds 50 and 300 chosen by us",
        ),
        Claim(
            "every model of the survey has fewer than d heads of rank at most d/4",
            few_and_low(list(map(_spec, listed))),
        ),
    )


def few_and_low(models: Sequence[BoundHeads]) -> bool:
    """Return whether every model has fewer than d heads, of rank at most d/4."""
    return all(one.heads < one.width and 4 * one.rank <= one.width for one in models)


TABLE_MODELS = Exhibit(
    caption="Width d, rank r and number of heads as the paper lists them, with the least mean "
    "squared error that one layer of such heads can have on the nearer of two orthonormal "
    "neighbours, and how many heads of that rank an error of 0.1 takes at least.",
    questions={Scale.MINIATURE: _questions, Scale.PAPER: _questions},
    present=_present,
    printed="the survey of models",
)
