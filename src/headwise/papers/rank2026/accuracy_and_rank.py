"""The kind of exhibit that sets accuracy after training beside rank at initialisation.

An exhibit of this kind is a few studies (a set and families of geometries), what its panels show,
and the claims that are printed about it. Whatever is not trained yet is named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headwise.attention import HeadGeometry
from headwise.data.classification import PUBLISHED
from headwise.papers.comparison import FLOOR, OTHER_SIZES, Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import SMALLER, rank_panel
from headwise.papers.kinds.real_ranks import READINGS, SET_NAMES
from headwise.papers.kinds.trained_rows import OverSeeds, over_seeds
from headwise.papers.printed import printed_table
from headwise.papers.rank2026.recipes import Family, Study
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row, Spec

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
            g.qk_rank: [row[field] for row in self.of(g) if row[field] is not None]
            for g in self._rising(family)
        }
        return {dim: own for dim, own in found.items() if own}

    def rank_points(self, family: Family, start: str) -> dict[Place, Pooled]:
        """The first-layer rank over length at each head dimension, in one reading."""
        own = [
            row
            for g in family.geometries(self.scale)
            for row in _having(self.ranks, g)
            if row["start"] == start
        ]
        return pooled_by(own, "head_dim")

    def parameters(self, family: Family) -> dict[int, int]:
        """The number of parameters at each trained head dimension."""
        return {
            g.qk_rank: own[0]["parameters"] for g in self._rising(family) if (own := self.of(g))
        }

    def _rising(self, family: Family) -> list[HeadGeometry]:
        return sorted(family.geometries(self.scale), key=lambda g: g.qk_rank)


def _having(rows: Iterable[Row], geometry: HeadGeometry) -> list[Row]:
    wanted = (geometry.width, geometry.heads, geometry.qk_rank)
    return [row for row in rows if (row["width"], row["heads"], row["head_dim"]) == wanted]


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
    name: str,
    title: str,
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
            uncompared=OTHER_SIZES if compared else "",
        )

    return Exhibit(
        name=f"rank2026/{name}",
        title=title,
        caption=caption,
        questions={scale: _questions(studies, scale) for scale in Scale},
        present=present,
        printed=printed,
        compared_at=(Scale.GPU, Scale.PAPER) if compared else (),
        partial=True,
    )


def _questions(studies: Sequence[Study], scale: Scale) -> Callable[[], list[Spec]]:
    def specs() -> list[Spec]:
        found = [spec for study in studies for spec in study.specs(scale)]
        # In miniature every set is the digits, so studies may ask the same.
        return list({spec.key: spec for spec in found}.values())

    return specs


def _panels(found: Sequence[Trained], view: View) -> list[Panel]:
    """Panels of accuracy for what is trained, then one of ranks for each reading."""
    accuracy = _epoch_panels(found) if view == "epochs" else [_end_panel(found)]
    accuracy = [panel for panel in accuracy if any(len(curve.mean) for curve in panel.curves)]
    return [*accuracy, *(_reading_panel(found, start) for start in READINGS)]


def _end_panel(found: Sequence[Trained]) -> Panel:
    curves = []
    for one in found:
        for family in one.study.families:
            points = {
                dim: over_seeds([{"x": value} for value in own], "x")
                for dim, own in one.accuracies(family).items()
            }
            curves.append(_accuracy_curve(_label(one, family), points, _printed_ends(one, family)))
    return Panel(
        "After training",
        "head dimension",
        "test accuracy",
        tuple(curves),
        x_scale="log",
        x_ticks=tuple(sorted({place for curve in curves for place in curve.mean.x})),
    )


def _accuracy_curve(
    label: str, points: dict[int, OverSeeds | None], printed: dict[int, float]
) -> Curve:
    known = {dim: point for dim, point in points.items() if point is not None}
    return Curve(
        label,
        Line(tuple(known), tuple(point.mean for point in known.values())),
        spread=tuple(point.spread for point in known.values()),
        printed=Line(tuple(printed), tuple(printed.values())),
    )


def _epoch_panels(found: Sequence[Trained]) -> list[Panel]:
    return [
        Panel(
            _label(one, family),
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
    ends = sorted(by_epoch)
    return Curve(label, Line(tuple(ends), tuple(sum(by_epoch[e]) / len(by_epoch[e]) for e in ends)))


def _reading_panel(found: Sequence[Trained], start: str) -> Panel:
    curves = [
        rank_curve(_label(one, family), one.rank_points(family, start))
        for one in found
        for family in one.study.families
    ]
    words = READINGS[start]
    return rank_panel(words[0].upper() + words[1:], curves)


def _label(one: Trained, family: Family) -> str:
    return f"{SET_NAMES[one.study.dataset]}, {family.label(one.scale)}"


def printed_accuracies() -> dict[tuple[str, int, int], float]:
    """Table 3: the final accuracy by set, width and number of heads."""
    return {
        (line["dataset"], int(line["width"]), int(line["heads"])): float(line["accuracy"])
        for line in printed_table("rank2026_table_3")
    }


def _printed_ends(one: Trained, family: Family) -> dict[int, float]:
    """Printed values by head dimension; print has them for fixed widths alone."""
    if family.heads is not None or one.scale not in (Scale.GPU, Scale.PAPER):
        return {}
    known = printed_accuracies()
    return {
        g.qk_rank: known[one.study.dataset, g.width, g.heads]
        for g in sorted(family.geometries(one.scale), key=lambda g: g.qk_rank)
    }


def _cells(found: Sequence[Trained]) -> list[Cell]:
    """Printed values beside ours, for sets that were trained on as a whole."""
    cells = []
    for one in found:
        for family in one.study.families if one.whole else ():
            for g in family.geometries(one.scale):
                printed = _printed_ends(one, family).get(g.qk_rank)
                ours = over_seeds(one.of(g), "test_accuracy")
                if printed is not None and ours is not None:
                    name = f"{_label(one, family)}, heads {g.heads}"
                    cells.append(Cell(name, printed, ours.mean, ours.stderr, floor=FLOOR))
    return cells


def _table(found: Sequence[Trained]) -> Table:
    columns = (
        "set",
        "width",
        "heads",
        "d_h",
        "parameters",
        "seeds",
        "validation accuracy",
        "test accuracy",
        "± one seed",
        "printed",
        *(f"rank / length, {words}" for words in READINGS.values()),
    )
    rows = [
        (SET_NAMES[one.study.dataset], *_line(one, family, g))
        for one in found
        for family in one.study.families
        for g in family.geometries(one.scale)
    ]
    return Table(columns, tuple(rows), title="Accuracy after training, rank before")


def _line(one: Trained, family: Family, geometry: HeadGeometry) -> tuple[Any, ...]:
    own = one.of(geometry)
    kept, tested = (over_seeds(own, f"{part}_accuracy") for part in ("validation", "test"))
    ranks = [one.rank_points(family, start).get(geometry.qk_rank) for start in READINGS]
    return (
        geometry.width,
        geometry.heads,
        geometry.qk_rank,
        own[0]["parameters"] if own else None,
        len(own),
        _rounded(kept),
        _rounded(tested),
        None if tested is None or tested.count < 2 else round(tested.spread, 4),
        _printed_ends(one, family).get(geometry.qk_rank),
        *(None if rank is None else round(rank.mean, 3) for rank in ranks),
    )


def _rounded(found: OverSeeds | None) -> float | str:
    return NOT_TRAINED if found is None else round(found.mean, 4)


def _remarks(found: Sequence[Trained]) -> tuple[str, ...]:
    trained = [_trained_words(one) for one in found if one.rows]
    left = [
        f"{_label(one, family)}, {g.heads} of {g.qk_rank}"
        for one in found
        for family in one.study.families
        for g in family.geometries(one.scale)
        if not one.of(g)
    ]
    lost = sum(row["diverged_at"] is not None for one in found for row in one.rows)
    words = [*trained]
    words += [f"Not trained: {'; '.join(left)}."] * bool(left)
    words += [f"{lost} runs diverged; they count in no mean."] * bool(lost)
    return (*words, _RANKS)


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
    "seeds (T = √d_h, ε = 1e-8, float64). The paper does not say how weights start there, so both "
    "readings stand beside each other. Optimiser, schedule, epochs and patches are choices of "
    "ours; `headwise.models.rank_paper` lists them with their reasons."
)
