"""The cost of low rank: the lower bound, random features, and heads trained on two points."""

from __future__ import annotations

from dataclasses import replace

from headwise.experiments.bound_heads import BoundHeads
from headwise.experiments.random_heads import RandomHeads
from headwise.experiments.train_pairs import TrainPairs
from headwise.experiments.training_cost import cheap_first
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid
from headwise.papers.heads2024.schedules import PAIRS
from headwise.papers.kinds.trained_rows import diverged_remark, seeds_by, trained_curve
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec
from headwise.theory.harmonics import Values, error_lower_bound, heads_needed

WIDTHS = (8, 16, 32, 64)
HEADS = (1, 4, 16, 64, 256, 1024)
MANY_HEADS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 16777216)
CLASSES = ("any", "identity")

#: The error for which heads are counted, that of the specs.
ERROR = 0.1


def _theory(width: int, ranks: tuple[int, ...], heads: tuple[int, ...]) -> list[Spec]:
    fixed = {"width": width}
    return grid(BoundHeads, fixed, values=CLASSES, rank=ranks, heads=heads)


def _trained(scale: Scale) -> list[Spec]:
    """Return trained layers, each with the bound for any value matrix."""
    specs: list[Spec] = []
    for width, (heads, schedule) in PAIRS[scale].items():
        fixed = {"width": width, "steps": schedule.steps, **schedule.more}
        specs += grid(TrainPairs, fixed, seeds=schedule.seeds, rank=schedule.ranks, heads=heads)
        specs += grid(BoundHeads, {"width": width}, rank=schedule.ranks, heads=heads)
    return specs


def _questions(scale: Scale) -> list[Spec]:
    untrained = _miniature() if scale is Scale.MINIATURE else _untrained()
    return cheap_first([*untrained, *_trained(scale)])


def _untrained() -> list[Spec]:
    return [
        *_theory(64, (1, 8, 16, 32), MANY_HEADS),
        *grid(BoundHeads, {"rank": 1}, width=WIDTHS, heads=HEADS, values=CLASSES),
        *grid(RandomHeads, {}, width=WIDTHS, heads=HEADS, seed=(0, 1, 2)),
        *grid(RandomHeads, {"counted": "all"}, width=(8, 16), heads=(1, 4, 16, 64)),
    ]


def _miniature() -> list[Spec]:
    return [
        *_theory(8, (1, 4), (1, 8, 64)),
        *grid(RandomHeads, {}, width=(8,), heads=(1, 8, 64), seed=(0, 1)),
    ]


def _present(answers: Answers) -> Presentation:
    random = answers.rows(kind="random_heads", counted="difference")
    trained = answers.rows(kind="train_pairs")
    return Presentation(
        panels=(_bound_panel(answers), _random_panel(answers), _trained_panel(answers)),
        tables=(_needed_table(answers),),
        claims=(
            Claim(
                "no random layer is below the bound of its class",
                all(row["error"] >= _bound(answers, row, "identity") for row in random),
            ),
            Claim(
                "no trained layer is below the bound of its class, on fresh data",
                all(_test_loss(row) >= _bound(answers, row, "any") for row in trained),
            ),
        ),
        remarks=(*_remarks(answers), *_trained_remarks(trained), *diverged_remark(trained)),
    )


def _test_loss(row: Row) -> float:
    """Return the test loss; a diverged run is above every bound."""
    return float("inf") if row["test_loss"] is None else row["test_loss"]


def _trained_remarks(rows: list[Row]) -> tuple[str, ...]:
    steps = sorted({row["steps"] for row in rows})
    return (
        f"Trained layers: softmax heads of rank one with any value matrix, no MLP, fresh data, "
        f"{' to '.join(f'{s:,}' for s in steps)} steps, {len({r['seed'] for r in rows})} seeds. "
        "The paper has no such experiment. A fixed set has no place here: the bound is one on the "
        "expected error, and what is memorised may lie below it.",
    )


def _trained_panel(answers: Answers) -> Panel:
    curves = []
    for width in sorted({row["width"] for row in answers.rows(kind="train_pairs")}):
        rows = answers.rows(kind="train_pairs", width=width)
        points = seeds_by(rows, "heads", "test_loss")
        bounds = answers.rows(kind="bound_heads", values="any", width=width, rank=1)
        own = [row for row in bounds if row["heads"] in points]
        curves.append(replace(trained_curve(f"d = {width}", points), law=_line(own, "bound")))
    return Panel(
        "Trained rank-1 heads, any V",
        "heads",
        "mean squared error",
        tuple(curves),
        x_scale="log",
        x_ticks=_heads(answers, "train_pairs"),
        levels=(("mean of the two points", 0.5),),
        law_label="lower bound",
    )


def _remarks(answers: Answers) -> tuple[str, ...]:
    widest = max(row["width"] for row in answers.rows(kind="bound_heads"))
    plateau = next(r["plateau"] for r in answers.rows(kind="bound_heads", width=widest))
    return (
        f"At d = {widest} the bound of rank far below d stands on a plateau of {plateau:.3f} until "
        "there are enough heads for degree 3: H = d/r heads have degree 1, and of degree 3 a share "
        "that grows with r. " + _standard_heads(answers, widest),
        "Random heads under their best weights lie above the bound that no choice of directions "
        "can pass. Their error is counted along x₁−x₂, as in the bound; fitted to the whole "
        "error, with no other way to write x₁+x₂, multiples of the identity lose more.",
    )


def _standard_heads(answers: Answers, width: int) -> str:
    """Describe the bound for d/r heads of each rank."""
    ranks = sorted({row["rank"] for row in answers.rows(kind="bound_heads", width=width)})
    told = [f"{error_lower_bound(width, r, width // r):.4f} at r = {r}" for r in ranks]
    return f"With any V their bound is {', '.join(told)}."


def _bound(answers: Answers, row: Row, values: str) -> float:
    wanted = {"width": row["width"], "rank": row["rank"], "heads": row["heads"]}
    return answers.row(kind="bound_heads", values=values, **wanted)["bound"]


def _bound_panel(answers: Answers) -> Panel:
    width = max(row["width"] for row in answers.rows(kind="bound_heads", values="any"))
    ranks = dict.fromkeys(
        row["rank"] for row in answers.rows(kind="bound_heads", values="any", width=width)
    )
    curves = tuple(
        Curve(
            f"r = {rank}, any V",
            _line(answers.rows(kind="bound_heads", values="any", width=width, rank=rank), "bound"),
            law=_line(
                answers.rows(kind="bound_heads", values="identity", width=width, rank=rank), "bound"
            ),
        )
        for rank in ranks
    )
    plateau = answers.rows(kind="bound_heads", width=width)[0]["plateau"]
    return Panel(
        f"Least error of H heads, d = {width}",
        "heads",
        "mean squared error",
        curves,
        x_scale="log",
        levels=(("degree 1 alone", plateau),),
        law_label="V = a·I",
    )


def _random_panel(answers: Answers) -> Panel:
    widths = dict.fromkeys(row["width"] for row in answers.rows(kind="random_heads"))
    return Panel(
        "Random rank-1 heads, best weights",
        "heads",
        "mean squared error",
        tuple(_random_curve(answers, width) for width in widths),
        x_scale="log",
        x_ticks=_heads(answers, "random_heads"),
        law_label="lower bound",
    )


def _random_curve(answers: Answers, width: int) -> Curve:
    rows = answers.rows(kind="random_heads", counted="difference", width=width)
    errors: dict[int, list[float]] = {}
    for row in rows:
        errors.setdefault(row["heads"], []).append(row["error"])
    bounds = answers.rows(kind="bound_heads", values="identity", width=width, rank=1)
    bounds = sorted((r for r in bounds if r["heads"] in errors), key=lambda row: row["heads"])
    return Curve(
        f"d = {width}",
        Line(tuple(errors), tuple(sum(e) / len(e) for e in errors.values())),
        spread=tuple((max(e) - min(e)) / 2 for e in errors.values()),
        law=_line(bounds, "bound"),
    )


def _needed_table(answers: Answers) -> Table:
    """Return, for each rank and class, the least number of heads whose bound is at most 0.1.

    A row holds the real number of heads at which the bound equals the error; heads are whole.
    """
    found: dict[tuple[int, int], dict[str, int | float]] = {}
    for row in answers.rows(kind="bound_heads", error=ERROR):
        place = found.setdefault((row["width"], row["rank"]), {})
        if row["values"] not in place:
            values = Values(row["values"])
            place[row["values"]] = heads_needed(row["width"], row["rank"], ERROR, values)
    rows = tuple(
        (d, r, *(f"{needed[c]:,}" if c in needed else None for c in CLASSES))
        for (d, r), needed in sorted(found.items())
    )
    columns = ("d", "r", f"heads for error {ERROR}, any V", f"heads for error {ERROR}, V = a·I")
    return Table(columns, rows, title=f"Least number of heads for an error of {ERROR}")


def _heads(answers: Answers, kind: str) -> tuple[int, ...]:
    return tuple(sorted({row["heads"] for row in answers.rows(kind=kind)}))


def _line(rows: list[Row], field: str) -> Line:
    found = {row["heads"]: row[field] for row in rows}
    places = sorted(found)
    return Line(tuple(places), tuple(found[place] for place in places))


FIGURE_LOWER_BOUND = Exhibit(
    name="heads2024/figure_lower_bound",
    title="Lower bound on the error of low-rank heads, and what heads reach",
    caption="Nearer of two orthonormal neighbours. First: least mean squared error of H heads of "
    "rank r, with any value matrices (points) and with multiples of the identity (thin). Second: "
    "random rank-one hardmax heads under their best weights (points, band: range over seeds) and "
    "the bound of their class (thin). Third: rank-one softmax heads trained on fresh data, mean, "
    "standard deviation and minimum over seeds.",
    questions={scale: (lambda scale=scale: _questions(scale)) for scale in PAIRS},
    present=_present,
)
