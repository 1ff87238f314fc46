"""Rank, parameters and depth: the heads paper's main figure, on its data and on fresh data."""

from __future__ import annotations

from dataclasses import replace

from headwise.experiments.training_cost import cheap_first
from headwise.papers.comparison import OTHER_SIZES, Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.heads2024.levels import of_zero_output
from headwise.papers.heads2024.remarks import (
    epoch_remarks,
    left_out_remark,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.heads2024.schedules import RANK_DEPTH, ByDepth
from headwise.papers.heads2024.trained import (
    depth_words,
    ends_early,
    exponent,
    protocol_panels,
    protocol_table,
    scheduled,
    shown_field,
)
from headwise.papers.kinds.trained_rows import (
    Place,
    diverged_remark,
    over_seeds,
    seeds_by,
    trained_cell,
)
from headwise.papers.printed import printed_table
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

#: Width and tokens at each scale.
SIZES = {
    Scale.MINIATURE: (8, 4),
    Scale.LAPTOP: (16, 8),
    Scale.GPU: (64, 16),
    Scale.PAPER: (64, 16),
}

Printed = dict[tuple[int, float], dict[Place, float]]


def questions(scale: Scale, table: ByDepth = RANK_DEPTH) -> list[Spec]:
    """Return the specs of a scale, cheap runs first."""
    width, tokens = SIZES[scale]
    return cheap_first(
        spec
        for (layers, copies), schedules in table.get(scale, {}).items()
        for schedule in schedules
        for spec in scheduled(schedule, width=width, tokens=tokens, layers=layers, copies=copies)
    )


def _present(answers: Answers) -> Presentation:
    rows = [row | {"exponent": exponent(row["width"], row["copies"])} for row in answers.rows()]
    comparable = answers.scale in (Scale.GPU, Scale.PAPER)
    printed = _printed() if comparable else {}
    return Presentation(
        panels=_panels(rows, printed),
        cells=_cells(rows, printed),
        uncompared=OTHER_SIZES,
        tables=(
            protocol_table(rows, {"layers": "layers", "exponent": "c", "rank": "r"}),
            *(_beside_authors(rows) if comparable else ()),
        ),
        claims=_claims(rows, comparable),
        remarks=(
            *schedule_remarks(answers, "100,000 steps of 256 and five"),
            *unlike_remark({depth_words(n): own for n, own in _labelled(rows).items()}),
            *_left_out(rows, printed),
            *epoch_remarks(rows),
            *((LOADER,) if comparable else ()),
            *_flattery(rows),
            *_not_on_new_data(rows),
            *stuck_remark(rows, "layers", "exponent", "rank"),
            *diverged_remark(rows),
        ),
        title=_title(rows),
    )


#: Why the paper's training loss is that of one fixed set.
LOADER = (
    "The authors' data set is drawn again from one seed at each epoch (repository "
    "NoahAmsel/attention-formers, commit 24a779c: the IterableDataset seeds itself in __iter__, "
    "which runs once an epoch), so a run sees the same 25,600 sequences again and again."
)


def _beside_authors(rows: list[Row]) -> tuple[Table, ...]:
    """Compare one layer of d/r heads with the authors' earlier sweep, both on fresh data."""
    own = [r for r in rows if (r["layers"], r["copies"], r["protocol"]) == (1, 1, "fresh")]
    points = seeds_by(own, "rank", "test_loss")
    lines = [
        (rank, loss, round(points[rank].mean, 4), round(points[rank].mean - loss, 4))
        for rank, loss in (
            (int(row["rank"]), float(row["loss"])) for row in printed_table("heads2024_fresh")
        )
        if rank in points
    ]
    if not lines:
        return ()
    title = (
        "Fresh data, one layer, H = d/r: the authors' own sweep (history of their repository; "
        "LayerNorm, 20,000 steps, best of three rates) and ours (mean over seeds)"
    )
    columns = ("r", "authors' sweep", "ours", "difference")
    return (Table(columns, tuple(lines), title=title),)


def _title(rows: list[Row]) -> str:
    """Return a title that names as many depths and sizes as the rows hold."""
    sizes, depths = (len({row[field] for row in rows}) for field in ("exponent", "layers"))
    parameters = _counted(sizes, "number")
    return f"Error against rank, for {parameters} of parameters and {_counted(depths, 'depth')}"


def _counted(count: int, noun: str) -> str:
    words = {1: "one", 2: "two", 3: "three"}
    return f"{words.get(count, str(count))} {noun}{'s' * (count > 1)}"


def _printed() -> Printed:
    found: Printed = {}
    for row in printed_table("heads2024_rank_depth"):
        place = (int(row["layers"]), float(row["exponent"]))
        found.setdefault(place, {})[int(row["rank"])] = float(row["loss"])
    return found


def _left_out(rows: list[Row], printed: Printed) -> tuple[str, ...]:
    wanted = {f"{depth_words(n)}, c {c:g}": losses for (n, c), losses in printed.items()}
    have: dict[str, set[int]] = {}
    for row in rows:
        name = f"{depth_words(row['layers'])}, c {row['exponent']:g}"
        have.setdefault(name, set()).add(row["rank"])
    return left_out_remark(wanted, have)


def _panels(rows: list[Row], printed: Printed) -> tuple[Panel, ...]:
    """Return the panels of the fixed set, then those of fresh data."""
    pairs = []
    for layers, labelled in _labelled(rows).items():
        beside = {_label(c): own for (depth, c), own in printed.items() if depth == layers}
        panels = protocol_panels(depth_words(layers), labelled, ("rank", "rank r"), beside)
        pairs.append(tuple(_told_if_zero(panel) for panel in panels))
    return tuple(panel for row in zip(*pairs, strict=True) for panel in row)


def _labelled(rows: list[Row]) -> dict[int, dict[str, list[Row]]]:
    """Return the rows of each depth, by curve."""
    found: dict[int, dict[str, list[Row]]] = {}
    for row in sorted(rows, key=lambda row: (row["layers"], row["exponent"])):
        found.setdefault(row["layers"], {}).setdefault(_label(row["exponent"]), []).append(row)
    return found


def _told_if_zero(panel: Panel) -> Panel:
    """Add "zero output" to the title of a panel whose losses are all 1."""
    if of_zero_output(value for curve in panel.curves for value in curve.mean.y):
        return replace(panel, title=f"{panel.title}: zero output")
    return panel


def _label(c: float) -> str:
    return f"H = d^{c:g}/r" if c != 1 else "H = d/r"


def _cells(rows: list[Row], printed: Printed) -> tuple[Cell, ...]:
    fixed = [row for row in rows if row["protocol"] == "fixed"]
    found = []
    for (layers, c), losses in printed.items():
        own = [row for row in fixed if (row["layers"], row["exponent"]) == (layers, c)]
        points = seeds_by(own, "rank", shown_field(own, "fixed"))
        found += [
            trained_cell(f"{depth_words(layers)}, c {c:g}, r {r}", points[r], loss)
            for r, loss in losses.items()
            if r in points
        ]
    return tuple(found)


def _claims(rows: list[Row], comparable: bool) -> tuple[Claim, ...]:
    one = [row for row in rows if row["layers"] == 1]
    width = max(row["width"] for row in rows)
    full = _least([row for row in one if row["exponent"] == 1], rank=width)
    # Layers whose heads share d² parameters are the standard ones: c = 1.
    ratios = [
        _mean(one, rank=width // 2, protocol=p, exponent=1.0)
        / _mean(one, rank=width, protocol=p, exponent=1.0)
        for p in ("fixed", "fresh")
        if any(row["rank"] == width // 2 for row in one)
    ]
    claims = []
    if comparable and one:
        low = min(_least(one, rank=r) for r in {row["rank"] for row in one} if r < width)
        claims += [
            Claim(
                "one layer of full rank and d² parameters reaches a loss of 0.02",
                full <= 0.02,
                "talk: full rank suffices; 0.02 is our measure",
            ),
            Claim(
                "one layer of rank 32 or less stays above 0.25",
                low > 0.25,
                "talk: full rank is necessary; 0.25 is our measure",
            ),
        ]
    if ratios:
        text = "with one layer and d² parameters full rank is at least 10 times better than half"
        claims.append(Claim(text, min(ratios) >= 10))
    return tuple(claims)


def _least(rows: list[Row], rank: int) -> float:
    found = over_seeds([r for r in rows if r["rank"] == rank], "best_train_loss")
    return float("inf") if found is None else found.least


def _mean(rows: list[Row], rank: int, protocol: str, exponent: float) -> float:
    own = [
        r for r in rows if (r["rank"], r["protocol"], r["exponent"]) == (rank, protocol, exponent)
    ]
    found = over_seeds(own, "test_loss" if protocol == "fresh" else "best_train_loss")
    return float("inf") if found is None else found.mean


def _flattery(rows: list[Row]) -> tuple[str, ...]:
    """Say how far the training loss on the fixed set is below the test loss."""
    fixed = [
        row
        for row in rows
        if row["protocol"] == "fixed" and row["test_loss"] is not None and not ends_early(row)
    ]
    gaps = {
        name: [row["test_loss"] - row["best_train_loss"] for row in fixed if chosen(row)]
        for name, chosen in (
            ("below full rank", lambda row: row["rank"] < row["width"]),
            ("at full rank", lambda row: row["rank"] == row["width"]),
        )
    }
    told = [f"{max(found):.3f} {name}" for name, found in gaps.items() if found]
    if not told:
        return ()
    return (
        "On the fixed set the best training loss lies below the test loss of the same run by up "
        f"to {' and '.join(told)}.",
    )


def _not_on_new_data(rows: list[Row]) -> tuple[str, ...]:
    """Name the settings whose models, trained on the fixed set, are no better than trivial."""
    fixed = [row for row in rows if row["protocol"] == "fixed"]
    told = []
    for layers, c in sorted({(row["layers"], row["exponent"]) for row in fixed}):
        own = [row for row in fixed if (row["layers"], row["exponent"]) == (layers, c)]
        points = seeds_by(own, "rank", "test_loss")
        ranks = [f"{rank}" for rank, point in points.items() if point.mean >= own[0]["trivial"]]
        if ranks:
            told.append(f"{depth_words(layers)}, c {c:g} at r = {', '.join(ranks)}")
    if not told:
        return ()
    return (
        "Trained on the fixed set and tested on new data, these are no better than the trivial "
        f"error (mean over seeds): {'; '.join(told)}.",
    )


FIGURE_RANK_DEPTH = Exhibit(
    name="heads2024/figure_rank_depth",
    title="Error against rank, by number of parameters and depth",
    caption="Farthest neighbour of N points on the sphere in d dimensions, post-norm encoder. "
    "Layers have H = d^c / r heads, so about d^(1+c) parameters. First, what the paper reports: "
    "the least epoch mean of the training loss on one fixed set, of 25,600 sequences in the paper "
    "(and at scales gpu and paper). Then the same trained on fresh data and tested on fresh data, "
    "or, without such runs, the test loss of the runs on the fixed set. "
    "Mean over seeds, band of one standard deviation, minimum dotted; hollow: printed minima over "
    "five runs, read off the figure. Dashed: least squares of token and token mean.",
    questions={scale: (lambda scale=scale: questions(scale)) for scale in RANK_DEPTH},
    present=_present,
    printed="the figure of rank, parameters and depth",
    compared_at=(Scale.GPU, Scale.PAPER),
    partial=True,
)
