"""The cost of low rank: the lower bound, random features, and heads trained on two points."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headwise.experiments.bound_heads import BoundHeads
from headwise.experiments.random_heads import RandomHeads
from headwise.experiments.train_pairs import TrainPairs
from headwise.experiments.training_cost import cheap_first
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, grouped
from headwise.papers.heads2024.schedules import PAIRS
from headwise.papers.kinds.trained_rows import diverged_remark, seeds_by, trained_curve
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec
from headwise.theory.harmonic_bound import Values, error_lower_bound, heads_needed

WIDTHS = (8, 16, 32, 64)
HEADS = (1, 4, 16, 64, 256, 1024)
MANY_HEADS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 16777216)

#: The classes of value matrices, and how they are written.
CLASSES = {"any": "any V", "identity": "V = a·I"}

#: The error for which heads are counted, that of the specs.
ERROR = 0.1


def _theory(width: int, ranks: tuple[int, ...], heads: tuple[int, ...]) -> list[Spec]:
    fixed = {"width": width}
    return grid(BoundHeads, fixed, values=tuple(CLASSES), rank=ranks, heads=heads)


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
        *grid(BoundHeads, {"rank": 1}, width=WIDTHS, heads=HEADS, values=tuple(CLASSES)),
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
                "the bound is nearly tight: random heads have at most twice its error",
                all(row["error"] <= 2 * _bound(answers, row, "identity") for row in random),
                "the authors' talk, open questions: pretty much tight; factor 2 chosen by us",
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
        "The paper has no such experiment. No fixed set is used: the bound limits the expected "
        "error, and a memorised set may go below it.",
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
        f"At d = {widest} the bound of rank far below d stays at a plateau of {plateau:.3f} until "
        "there are enough heads for degree 3: H = d/r heads have degree 1, and of degree 3 a share "
        "that grows with r. " + _standard_heads(answers, widest),
        "Random heads with their best weights lie above the bound, which holds for all "
        "directions. Their error is counted along x₁−x₂, as in the bound; fitted to the whole "
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
    errors = {n: [row["error"] for row in own] for n, own in grouped(rows, "heads").items()}
    bounds = answers.rows(kind="bound_heads", values="identity", width=width, rank=1)
    bounds = [row for row in bounds if row["heads"] in errors]
    return Curve(
        f"d = {width}",
        Line.of({heads: sum(e) / len(e) for heads, e in errors.items()}),
        spread=tuple((max(e) - min(e)) / 2 for e in errors.values()),
        law=_line(bounds, "bound"),
    )


def _needed_table(answers: Answers) -> Table:
    """Return, for each rank and class, the least number of heads whose bound is at most 0.1.

    A row holds the real number of heads at which the bound equals the error; heads are whole.
    """
    bounds = answers.rows(kind="bound_heads", error=ERROR)
    asked = {(row["width"], row["rank"], row["values"]) for row in bounds}
    needed = {one: f"{heads_needed(*one[:2], ERROR, Values(one[2])):,}" for one in asked}
    rows = (
        {"d": d, "r": r}
        | {f"heads for error {ERROR}, {name}": needed.get((d, r, c)) for c, name in CLASSES.items()}
        for d, r in sorted({one[:2] for one in asked})
    )
    return Table.of(rows, title=f"Least number of heads for an error of {ERROR}")


def _heads(answers: Answers, kind: str) -> tuple[int, ...]:
    return tuple(sorted({row["heads"] for row in answers.rows(kind=kind)}))


def _line(rows: list[Row], field: str) -> Line:
    found = {row["heads"]: row[field] for row in rows}
    return Line.of(dict(sorted(found.items())))


FIGURE_LOWER_BOUND = Exhibit(
    caption="Nearer of two orthonormal neighbours. First: least mean squared error of H heads of "
    "rank r, with any value matrices (points) and with multiples of the identity (thin). Second: "
    "random rank-one hardmax heads under their best weights (points, band: range over seeds) and "
    "the bound of their class (thin). Third: rank-one softmax heads trained on fresh data, mean, "
    "standard deviation (band) and minimum (dotted) over seeds.",
    questions={scale: partial(_questions, scale) for scale in PAIRS},
    present=_present,
)
