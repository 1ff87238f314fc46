"""The kind of exhibit that sets accuracy after training beside rank at initialisation.

An exhibit of this kind is a few studies (a set and families of geometries), what its panels show,
and the claims that are published about it. Whatever is not trained yet is named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headwise.attention import HeadGeometry
from headwise.data.classification import PUBLISHED
from headwise.papers.comparison import FLOOR, OTHER_SIZES, Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, matching
from headwise.papers.kinds.rank_rows import Coordinate, Pooled, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import SMALLER, rank_panel
from headwise.papers.kinds.real_ranks import READINGS, SET_NAMES
from headwise.papers.kinds.trained_rows import FALL, OverSeeds, over_seeds, unstable
from headwise.papers.rank2026.recipes import Family, Study, heads_in_print, printed_accuracies
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row

#: What the panels of accuracy show: the end against the head dimension, or every epoch.
View = Literal["head dimension", "epochs"]

NOT_TRAINED = "not trained"


@dataclass(frozen=True)
class Trained:
    """A study at a scale, with the rows that are there.

    Attributes:
        study: What was asked.
        scale: At which scale.
        rows: Rows of trained seeds.
        ranks: Rows of measured ranks.
    """

    study: Study
    scale: Scale
    rows: list[Row]
    ranks: list[Row]

    @property
    def whole(self) -> bool:
        """Whether every run trained on the whole published set."""
        return bool(self.rows) and all(row["per_class"] is None for row in self.rows)

    def of(self, geometry: HeadGeometry) -> list[Row]:
        """The trained seeds of a geometry."""
        return _having(self.rows, geometry)

    def accuracies(self, family: Family, field: str = "test_accuracy") -> dict[int, list[float]]:
        """The accuracy of every seed that did not diverge, for each trained head dimension."""
        found = {
            dim: [row[field] for row in own if row[field] is not None]
            for dim, own in self.by_dim(family).items()
        }
        return {dim: own for dim, own in found.items() if own}

    def rank_rows(self, family: Family, start: str) -> list[Row]:
        """The rows of first-layer ranks of a family, in one reading."""
        rows = (row for g in family.geometries(self.scale) for row in _having(self.ranks, g))
        return matching(rows, start=start)

    def rank_points(self, family: Family, start: str) -> dict[Coordinate, Pooled]:
        """The first-layer rank over length at each head dimension, in one reading."""
        return pooled_by(self.rank_rows(family, start), "head_dim")

    def parameters(self, family: Family) -> dict[int, int]:
        """The number of parameters at each trained head dimension."""
        return {dim: own[0]["parameters"] for dim, own in self.by_dim(family).items() if own}

    def label(self, family: Family) -> str:
        """The words for a family on this set."""
        return f"{SET_NAMES[self.study.dataset]}, {family.label(self.scale)}"

    def by_dim(self, family: Family) -> dict[int, list[Row]]:
        """The trained seeds at each head dimension, in rising order."""
        return {g.qk_rank: self.of(g) for g in self.rising(family)}

    def rising(self, family: Family) -> list[HeadGeometry]:
        """The geometries of a family, in rising order of their head dimension."""
        return sorted(family.geometries(self.scale), key=lambda g: g.qk_rank)


def _having(rows: Iterable[Row], geometry: HeadGeometry) -> list[Row]:
    return matching(rows, width=geometry.width, heads=geometry.heads, head_dim=geometry.qk_rank)


def trained_of(study: Study, answers: Answers) -> Trained:
    """The rows of a study among the answers."""
    keys = {spec.key for spec in study.specs(answers.scale)}
    rows = [row for record in answers.records if record.key in keys for row in record.joined()]
    trained = [row for row in rows if row["kind"].startswith("train_")]
    ranks = [row for row in rows if not row["kind"].startswith("train_")]
    return Trained(study, answers.scale, trained, ranks)


#: Claims about a study, from what was trained.
Claims = Callable[[Trained], list[Claim]]


def accuracy_exhibit(
    caption: str,
    *,
    studies: Sequence[Study],
    printed: str,
    view: View = "head dimension",
    claims: Claims = lambda found: [],
    compared: bool = False,
) -> Exhibit:
    """Make an exhibit of accuracy and rank; ``compared`` ones have cells for Table 3's values."""

    def present(answers: Answers) -> Presentation:
        found = [trained_of(study, answers) for study in studies]
        small = answers.scale is Scale.MINIATURE
        return Presentation(
            panels=() if compared else tuple(_panels(found, view)),
            cells=tuple(_cells(found)) if compared else (),
            tables=(_table(found),),
            claims=() if small else tuple(claim for one in found for claim in claims(one)),
            remarks=((SMALLER,) if small else ()) + _remarks(found),
            uncompared=_uncompared(found, compared),
        )

    return Exhibit(
        caption=caption,
        # In miniature every set is the digits, so studies may ask the same.
        questions={
            scale: (lambda scale=scale: [s for study in studies for s in study.specs(scale)])
            for scale in Scale
        },
        present=present,
        printed=printed,
        compared_at=(Scale.GPU, Scale.PAPER) if compared else (),
        partial=True,
    )


def _uncompared(found: Sequence[Trained], compared: bool) -> str:
    if not any(one.rows for one in found):
        return "not trained yet; ranks before training only"
    return OTHER_SIZES if compared else ""


def _panels(found: Sequence[Trained], view: View) -> list[Panel]:
    """Panels of accuracy for what is trained, then one of ranks for each reading."""
    accuracy = [*(_epoch_panels(found) if view == "epochs" else []), _end_panel(found)]
    shown = [p for p in accuracy if any(len(c.mean) or len(c.printed) for c in p.curves)]
    return [*shown, *(_reading_panel(found, start) for start in READINGS)]


def _end_panel(found: Sequence[Trained]) -> Panel:
    curves = [_end_curve(one, family) for one in found for family in one.study.families]
    return Panel(
        "After training",
        "head dimension",
        "test accuracy",
        tuple(curves),
        x_scale="log",
        x_ticks=tuple(sorted({x for c in curves for x in (*c.mean.x, *c.printed.x)})),
        ceiling=1.0,
    )


def _end_curve(one: Trained, family: Family) -> Curve:
    points = {dim: over_seeds(own, "test_accuracy") for dim, own in one.by_dim(family).items()}
    known = {dim: point for dim, point in points.items() if point is not None}
    return Curve(
        one.label(family),
        Line.of({dim: point.mean for dim, point in known.items()}),
        spread=tuple(point.spread for point in known.values()),
        # Beside a subset, published values of the whole set would look like a failure to learn.
        printed=Line.of(_printed_ends(one, family) if one.whole or not one.rows else {}),
    )


def _epoch_panels(found: Sequence[Trained]) -> list[Panel]:
    return [
        Panel(
            one.label(family),
            "epoch",
            "validation accuracy",
            tuple(
                _epoch_curve(geometry, one.of(geometry))
                for geometry in family.geometries(one.scale)
            ),
            shared_y=True,
        )
        for one in found
        for family in one.study.families
    ]


def _epoch_curve(geometry: HeadGeometry, rows: Sequence[Row]) -> Curve:
    """The mean over seeds; all seeds of a geometry are looked at after the same epochs."""
    label = f"{geometry.heads} head{'s' * (geometry.heads > 1)} of {geometry.qk_rank}"
    by_epoch: dict[float, list[float]] = {}
    for row in rows:
        for epoch, accuracy in zip(row["curve_epoch"], row["curve_accuracy"], strict=True):
            if accuracy is not None:
                by_epoch.setdefault(epoch, []).append(accuracy)
    return Curve(label, Line.of({e: sum(own) / len(own) for e, own in sorted(by_epoch.items())}))


def _reading_panel(found: Sequence[Trained], start: str) -> Panel:
    curves = [
        rank_curve(one.label(family), one.rank_points(family, start))
        for one in found
        for family in one.study.families
    ]
    return rank_panel(f"Before training, {READINGS[start]}", curves)


def _printed_ends(one: Trained, family: Family) -> dict[int, float]:
    """Published values by head dimension; the paper has them for fixed widths alone."""
    if family.heads is not None or one.scale not in (Scale.GPU, Scale.PAPER):
        return {}
    known = printed_accuracies()
    return {g.qk_rank: known[one.study.dataset, g.width, g.heads] for g in one.rising(family)}


def _cells(found: Sequence[Trained]) -> list[Cell]:
    """Published values beside ours, for sets that were trained on as a whole."""
    cells = []
    for one, family, g in _settings([one for one in found if one.whole]):
        printed = _printed_ends(one, family).get(g.qk_rank)
        ours = over_seeds(one.of(g), "test_accuracy")
        if printed is not None and ours is not None:
            name = f"{one.label(family)}, heads {g.heads}"
            cells.append(Cell(name, printed, ours.mean, ours.stderr, floor=FLOOR))
    return cells


def _settings(found: Sequence[Trained]) -> Iterator[tuple[Trained, Family, HeadGeometry]]:
    """Every geometry of every family that was asked for."""
    for one in found:
        for family in one.study.families:
            yield from ((one, family, g) for g in family.geometries(one.scale))


def _table(found: Sequence[Trained]) -> Table:
    rows = (_line(*setting) for setting in _settings(found))
    return Table.of(rows, title="Accuracy after training, rank before")


def _line(one: Trained, family: Family, geometry: HeadGeometry) -> dict[str, Any]:
    own = one.of(geometry)
    kept, tested = (over_seeds(own, f"{part}_accuracy") for part in ("validation", "test"))
    ranks = {
        f"rank / length, {words}": one.rank_points(family, start).get(geometry.qk_rank)
        for start, words in READINGS.items()
    }
    return {
        "set": SET_NAMES[one.study.dataset],
        "width": geometry.width,
        "heads": geometry.heads,
        "d_h": geometry.qk_rank,
        "parameters": own[0]["parameters"] if own else None,
        "seeds": len(own),
        "validation accuracy": _rounded(kept),
        "test accuracy": _rounded(tested),
        "± one seed": None if tested is None or tested.count < 2 else round(tested.spread, 4),
        "published": _printed_ends(one, family).get(geometry.qk_rank),
        **{name: None if rank is None else round(rank.mean, 3) for name, rank in ranks.items()},
    }


def _rounded(found: OverSeeds | None) -> float | str:
    return NOT_TRAINED if found is None else round(found.mean, 4)


def _remarks(found: Sequence[Trained]) -> tuple[str, ...]:
    trained = [_trained_words(one) for one in found if one.rows]
    left = [
        f"{one.label(family)}, {g.heads} of {g.qk_rank}"
        for one, family, g in _settings(found)
        if not one.of(g)
    ]
    lost = sum(row["diverged_at"] is not None for one in found for row in one.rows)
    words = [
        *trained,
        *heads_in_print([(o.study.dataset, f) for o in found for f in o.study.families]),
    ]
    words += [f"Not trained: {'; '.join(left)}."] * bool(left)
    words += [f"{lost} runs diverged; they count in no mean."] * bool(lost)
    words += [_unstable_words(one, f) for one in found for f in one.study.families]
    return (*filter(None, words), _RANKS)


def _unstable_words(one: Trained, family: Family) -> str:
    """Say where validation accuracy fell while training; empty if nowhere or in miniature."""
    if one.scale is Scale.MINIATURE:
        return ""
    why = unstable([row for own in one.by_dim(family).values() for row in own])
    what = f"there validation accuracy falls by more than {FALL:.0%} of its best"
    return f"{one.label(family)}: {why}; {what}." if why else ""


def _trained_words(one: Trained) -> str:
    row = one.rows[0]
    published = PUBLISHED.get(row["dataset"])
    used = row["trained_on"] + row["validated_on"]
    part = "" if published is None or used == published else f" (a subset of {published:,})"
    epochs = " and ".join(map(str, sorted({r["epochs"] for r in one.rows})))
    return (
        f"{SET_NAMES[row['dataset']]}: {row['trained_on']:,} samples trained on{part}, "
        f"{row['validated_on']:,} set aside for validation, {row['tested_on']:,} tested once at "
        f"the end; {epochs} epochs of batches of {row['batch']}, products in {row['dtype']}."
    )


_RANKS = (
    "Ranks are those of the first layer at initialisation, averaged over heads, a mini-batch and "
    "seeds (T = √d_h, ε = 1e-8, float64). The paper says so of Figure 3b alone; of Figures "
    "4b and 10b it does not say when. Nor does it say how weights start, so both readings are "
    "shown. Optimiser, schedule, epochs and patches are choices of ours, and so are "
    "the width, depth and number of heads on IMDB and the width of 192 in Figures 10 to 13: C.3 "
    "gives no width and speaks of varied model dimensions, §4.2 of a regime as in §4.1, where the "
    "width does not follow d_h. We keep the width fixed. "
    "`headwise.models.rank_paper` lists our choices with their reasons."
)
