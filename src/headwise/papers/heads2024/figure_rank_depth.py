"""Rank, parameters and depth: the heads paper's main figure, on its data and on fresh data."""

from __future__ import annotations

from headwise.experiments.training_cost import cheap_first
from headwise.papers.exhibit import Claim, Scale, grouped, matching
from headwise.papers.heads2024.schedules import RANK_DEPTH, ByDepth, scheduled
from headwise.papers.kinds.protocols import depth_words, ends_early
from headwise.papers.kinds.trained_grid import COMPARED, TrainedGrid
from headwise.papers.kinds.trained_rows import over_seeds, seeds_by
from headwise.papers.printed import printed_table
from headwise.report import Table
from headwise.runs import Row, Spec

#: Width and tokens at each scale.
SIZES = {
    Scale.MINIATURE: (8, 4),
    Scale.LAPTOP: (16, 8),
    Scale.GPU: (64, 16),
    Scale.PAPER: (64, 16),
}


def questions(scale: Scale, table: ByDepth = RANK_DEPTH) -> list[Spec]:
    """Return the specs of a scale, cheap runs first."""
    width, tokens = SIZES[scale]
    return cheap_first(
        spec
        for (layers, copies), schedules in table.get(scale, {}).items()
        for schedule in schedules
        for spec in scheduled(schedule, width=width, tokens=tokens, layers=layers, copies=copies)
    )


def exponent(width: int, copies: int) -> float:
    """c of H = d^c / r heads, as the paper names it: copies are d^(c−1), rounded."""
    return min((1.0, 1.5, 2.0), key=lambda c: abs(width ** (c - 1) - copies))


#: Why the paper's training loss is that of one fixed set.
LOADER = (
    "The authors' data set is drawn again from one seed at each epoch (repository "
    "NoahAmsel/attention-formers, commit 24a779c: the IterableDataset seeds itself in __iter__, "
    "which runs once an epoch), so a run sees the same 25,600 sequences again and again."
)


def _beside_authors(rows: list[Row], scale: Scale) -> tuple[Table, ...]:
    """Compare one layer of d/r heads with the authors' earlier sweep, both on fresh data."""
    if scale not in COMPARED:
        return ()
    own = matching(rows, layers=1, copies=1, protocol="fresh")
    points = seeds_by(own, "rank", "test_loss")
    lines = [
        {
            "r": rank,
            "authors' sweep": loss,
            "ours": round(points[rank].mean, 4),
            "difference": round(points[rank].mean - loss, 4),
        }
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
    return (Table.of(lines, title=title),)


def _title(rows: list[Row]) -> str:
    """Return a title that names as many depths and sizes as the rows hold."""
    sizes, depths = (len({row[field] for row in rows}) for field in ("exponent", "layers"))
    parameters = _counted(sizes, "number")
    return f"Error against rank, for {parameters} of parameters and {_counted(depths, 'depth')}"


def _counted(count: int, noun: str) -> str:
    words = {1: "one", 2: "two", 3: "three"}
    return f"{words.get(count, str(count))} {noun}{'s' * (count > 1)}"


#: How many parameters a layer has, for each c.
PARAMETERS = {1.0: "d²", 1.5: "d^2.5", 2.0: "d³"}


def _label(c: float | int) -> str:
    """Return how many parameters a layer of H = d^c/r heads has."""
    return f"{PARAMETERS[c]} parameters"


def _claims(rows: list[Row], scale: Scale) -> tuple[Claim, ...]:
    one = matching(rows, layers=1)
    width = max(row["width"] for row in rows)
    full = _least(matching(one, exponent=1), rank=width)
    # Layers whose heads share d² parameters are the standard ones: c = 1.
    ratios = [
        _mean(one, rank=width // 2, protocol=p) / _mean(one, rank=width, protocol=p)
        for p in ("fixed", "fresh")
        if any(row["rank"] == width // 2 for row in one)
    ]
    claims = []
    if scale in COMPARED and one:
        low = min(_least(one, rank=r) for r in {row["rank"] for row in one} if r < width)
        claims += [
            Claim(
                "one layer of full rank and d² parameters reaches a loss of 0.02",
                full <= 0.02,
                "the authors' talk: full rank suffices; threshold 0.02 chosen by us",
            ),
            Claim(
                "one layer of rank 32 or less stays above 0.25",
                low > 0.25,
                "the authors' talk: full rank is necessary; threshold 0.25 chosen by us",
            ),
        ]
    deep = _deep_ratios(rows, width) if scale in COMPARED else []
    if deep:
        claims.append(
            Claim(
                f"with several layers rank {width // 4} has at least twice the loss of full rank, "
                "for every number of parameters (five layers with d² apart)",
                min(deep) >= 2,
                "the authors' talk: with more layers low rank is much weaker; "
                "factor 2 chosen by us",
            )
        )
    if ratios:
        text = "with one layer and d² parameters full rank is at least 10 times better than half"
        claims.append(Claim(text, min(ratios) >= 10))
    return tuple(claims)


def _deep_ratios(rows: list[Row], width: int) -> list[float]:
    """Loss of a quarter of full rank over full rank; the talk calls five layers with d² junk."""
    found = []
    fixed = grouped(matching(rows, protocol="fixed"), "layers", "exponent")
    for (layers, c), own in sorted(fixed.items()):
        both = {width, width // 4} <= {row["rank"] for row in own}
        if layers > 1 and (layers, c) != (5, 1.0) and both:
            found.append(_least(own, rank=width // 4) / _least(own, rank=width))
    return found


def _least(rows: list[Row], rank: int) -> float:
    found = over_seeds(matching(rows, rank=rank), "best_train_loss")
    return float("inf") if found is None else found.least


def _mean(rows: list[Row], rank: int, protocol: str) -> float:
    own = matching(rows, rank=rank, protocol=protocol, exponent=1.0)
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
    fixed = grouped(matching(rows, protocol="fixed"), "layers", "exponent")
    told = []
    for (layers, c), own in sorted(fixed.items()):
        points = seeds_by(own, "rank", "test_loss")
        ranks = [f"{rank}" for rank, point in points.items() if point.mean >= own[0]["trivial"]]
        if ranks:
            told.append(f"{depth_words(layers)}, {_label(c)} at r = {', '.join(ranks)}")
    if not told:
        return ()
    return (
        "Trained on the fixed set and tested on new data, these are no better than the trivial "
        f"error (mean over seeds): {'; '.join(told)}.",
    )


def _remarks(rows: list[Row], scale: Scale) -> tuple[str, ...]:
    loader = (LOADER,) if scale in COMPARED else ()
    return (*loader, *_flattery(rows), *_not_on_new_data(rows))


FIGURE_RANK_DEPTH = TrainedGrid(
    questions=questions,
    scales=tuple(RANK_DEPTH),
    curve="exponent",
    label=_label,
    cell="{panel}, {label}",
    printed="heads2024_rank_depth",
    schedule="100,000 steps of 256 and five",
    columns={"layers": "layers", "exponent": "c", "rank": "r"},
    more=lambda row: {"exponent": exponent(row["width"], row["copies"])},
    claims=_claims,
    tables=_beside_authors,
    remarks=_remarks,
    title=_title,
).exhibit(
    "Farthest neighbour of N points on the sphere in d dimensions, post-norm encoder. "
    "Layers have H = d^c / r heads, c = 1, 1.5 or 2, so about d², d^2.5 or d³ parameters. Left, "
    "what the paper reports: the least epoch mean of the training loss on one fixed set, of 25,600 "
    "sequences in the paper (and at scales gpu and paper). Right: the same trained on fresh data "
    "and tested on fresh data, or, without such runs, the test loss of the runs on the fixed set. "
    "Mean over seeds, with a band of one standard deviation. Dotted: minimum over seeds. Hollow: "
    "published minima over five runs, read off the figure. Dashed: least squares of token and "
    "token mean.",
    printed="the figure of rank, parameters and depth",
)
