"""What is trained and measured for the rank paper's figures on real data: one table of recipes.

A study is one set and some families of geometries. Its specs train every geometry, and measure its
ranks in the first layer at initialisation, in both readings. To deepen a scale, change numbers in
``RECIPES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.attention import HeadGeometry
from headwise.experiments.real_rank import ImageRank, TextRank
from headwise.experiments.train_classifier import TrainImages, TrainTexts
from headwise.models.rank_paper import fixed_heads, fixed_width
from headwise.papers.exhibit import Scale, grid
from headwise.papers.kinds.real_ranks import READINGS
from headwise.papers.printed import printed_table
from headwise.runs import Spec

#: Widths are divided by this where a scale trains a smaller model.
SHRUNK = {Scale.MINIATURE: 12, Scale.LAPTOP: 3}

#: Geometries of a family in miniature.
FEW = 3


@dataclass(frozen=True)
class Family:
    """Geometries that make one curve: a fixed width, or a fixed number of heads.

    >>> [g.qk_rank for g in Family(192).geometries(Scale.GPU)]
    [192, 96, 48, 24, 12]
    >>> Family(192, heads=8).label(Scale.GPU)
    '8 heads, width 192'
    """

    width: int
    heads: int | None = None
    head_dims: tuple[int, ...] = (2, 4, 8, 16, 32)

    def geometries(self, scale: Scale) -> list[HeadGeometry]:
        """The geometries at a scale, in the paper's order."""
        width = self.width // SHRUNK.get(scale, 1)
        most = FEW if scale is Scale.MINIATURE else None
        if self.heads is None:
            return fixed_width(width)[:most]
        return fixed_heads(width, self.heads, self.head_dims[:most])

    def label(self, scale: Scale) -> str:
        """What tells the family apart."""
        width = f"width {self.width // SHRUNK.get(scale, 1)}"
        return width if self.heads is None else f"{self.heads} heads, {width}"


@dataclass(frozen=True)
class Study:
    """One set and the families of geometries that are trained on it.

    >>> study = Study("imdb", (Family(128, heads=8, head_dims=(2, 3, 4, 8, 16)),))
    >>> len(study.specs(Scale.GPU))
    45
    """

    dataset: str
    families: tuple[Family, ...]

    @property
    def reads_text(self) -> bool:
        """Whether inputs are words."""
        return self.dataset == "imdb"

    def specs(self, scale: Scale) -> list[Spec]:
        """Every training run, then every rank."""
        geometries = [g for family in self.families for g in family.geometries(scale)]
        trained = [spec for g in geometries for spec in self._training(scale, g)]
        return [*trained, *(spec for g in geometries for spec in self._ranks(scale, g))]

    def _training(self, scale: Scale, geometry: HeadGeometry) -> Iterator[Spec]:
        recipe = RECIPES[scale][self.dataset]
        content = {**_sizes(geometry), **_named(scale, self.dataset), **recipe.more}
        kind = TrainTexts if self.reads_text else TrainImages
        for seeds in recipe.seeds:
            yield kind(**content, epochs=recipe.epochs, seeds=seeds)

    def _ranks(self, scale: Scale, geometry: HeadGeometry) -> list[Spec]:
        kind = TextRank if self.reads_text else ImageRank
        sizes = RANK_SIZES[scale]["text" if self.reads_text else "images"]
        fixed = {**_sizes(geometry), **_named(scale, self.dataset), **sizes}
        return grid(kind, fixed, start=tuple(READINGS), seed=RANK_SEEDS[scale])


@dataclass(frozen=True)
class Recipe:
    """Epochs, groups of seeds that train as one, and whatever else a scale changes."""

    epochs: int
    seeds: tuple[tuple[int, ...], ...] = ((0, 1),)
    more: Mapping[str, Any] = field(default_factory=dict)


def _sizes(geometry: HeadGeometry) -> dict[str, int]:
    return {"width": geometry.width, "heads": geometry.heads, "head_dim": geometry.qk_rank}


def _named(scale: Scale, dataset: str) -> dict[str, str]:
    return {"dataset": "digits" if scale is Scale.MINIATURE else dataset}


_TINY = {"depth": 1, "mlp_width": 16, "batch": 48, "learning_rate": 5e-3, "warm_up_epochs": 1}
_SMALL = {"depth": 4, "mlp_width": 128, "warm_up_epochs": 2}
_ROUNDED = {"dtype": "bf16"}

#: Scale -> set -> recipe. Laptop: a small model on a part of the set. gpu: the paper's model in
#: bfloat16; CIFAR-100 and SVHN on the first 100 and 1,000 images of each class, for 100 epochs,
#: which is 7,000 steps: the fifteen geometries of a set then take about 12 minutes of an H200.
#: paper: 200 epochs, as in the recipe that the paper's settings come from; 20 for reviews.
RECIPES: dict[Scale, dict[str, Recipe]] = {
    Scale.MINIATURE: {
        **dict.fromkeys(("cifar10", "cifar100", "svhn"), Recipe(4, more=_TINY | {"patch": 2})),
        "imdb": Recipe(2, more=_TINY | {"length": 64}),
    },
    Scale.LAPTOP: {
        **dict.fromkeys(("cifar10", "svhn"), Recipe(10, more=_SMALL | {"per_class": 500})),
        "cifar100": Recipe(10, more=_SMALL | {"per_class": 50}),
        "imdb": Recipe(4, more={"mlp_width": 128, "per_class": 2500, "length": 128}),
    },
    Scale.GPU: {
        "cifar10": Recipe(58, more=_ROUNDED),
        "cifar100": Recipe(100, more=_ROUNDED | {"per_class": 100}),
        "svhn": Recipe(100, more=_ROUNDED | {"per_class": 1000}),
        "imdb": Recipe(10, seeds=((0, 1, 2),), more=_ROUNDED),
    },
    Scale.PAPER: {
        **dict.fromkeys(("cifar10", "cifar100", "svhn"), Recipe(200, seeds=((0, 1, 2, 3, 4),))),
        "imdb": Recipe(20, seeds=((0, 1, 2, 3, 4),)),
    },
}

#: Mini-batches whose ranks are measured, and how long texts are.
RANK_SIZES: dict[Scale, dict[str, dict[str, int]]] = {
    Scale.MINIATURE: {"images": {"patch": 2, "batch": 4}, "text": {"tokens": 64, "batch": 4}},
    Scale.LAPTOP: {"images": {"batch": 8}, "text": {"tokens": 128, "batch": 4}},
    Scale.GPU: {"images": {"batch": 8}, "text": {"tokens": 256, "batch": 4}},
    Scale.PAPER: {"images": {"batch": 32}, "text": {"tokens": 256, "batch": 32}},
}
RANK_SEEDS = {
    Scale.MINIATURE: (0, 1),
    Scale.LAPTOP: (0, 1),
    Scale.GPU: (0, 1, 2, 3),
    Scale.PAPER: (0, 1, 2, 3),
}

WIDTHS = (Family(192), Family(384))
HEADS = (Family(192, heads=4), Family(192, heads=8))
REVIEWS = Study("imdb", (Family(128, heads=8, head_dims=(2, 3, 4, 8, 16)),))


def printed_accuracies() -> dict[tuple[str, int, int], float]:
    """Table 3: the final accuracy by set, width and number of heads."""
    return {
        (line["dataset"], int(line["width"]), int(line["heads"])): float(line["accuracy"])
        for line in printed_table("rank2026_table_3")
    }


def heads_in_print(families: Sequence[tuple[str, Family]]) -> list[str]:
    """Say in how many rows of Table 3 accuracy falls from 8 to 16 heads; the text says it rises."""
    known = printed_accuracies()
    rows = [
        (name, f.width) for name, f in families if f.heads is None and (name, f.width, 16) in known
    ]
    below = sum(known[*row, 16] < known[*row, 8] for row in rows)
    text = "The text says that more heads do better. In the paper 16 heads are below 8"
    return [f"{text} in {below} of {len(rows)} rows."] * bool(below)
