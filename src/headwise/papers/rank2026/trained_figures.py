"""Figures 3a, 4, 7 to 13 and Table 3: accuracy after training beside rank at initialisation."""

from __future__ import annotations

from headwise.papers.exhibit import Exhibit
from headwise.papers.kinds.real_ranks import SET_NAMES
from headwise.papers.rank2026.accuracy_and_rank import accuracy_exhibit
from headwise.papers.rank2026.accuracy_claims import heads_claims, width_claims
from headwise.papers.rank2026.recipes import HEADS, REVIEWS, WIDTHS, Family, Study

_SHOWN = (
    "Means over seeds, with a band of one standard deviation of a seed where the head dimension is "
    "the axis. Rank over length in the first layer at initialisation: N(0, 1) weights, and the "
    "model's own; bands of one standard deviation of single matrices."
)


def _by_epoch(number: int, dataset: str, families: tuple[Family, Family]) -> Exhibit:
    """Figures 7 to 9 have the widths fixed, Figures 11 to 13 the numbers of heads."""
    geometries, claims = {
        WIDTHS: ("width 192 and 384, with 1 to 16 heads that share the width", width_claims),
        HEADS: ("width 192, with 4 and 8 heads of dimension 2 to 32", heads_claims),
    }[families]
    printed = (
        "Hollow: published in Table 3, if we trained on the whole set. "
        if families is WIDTHS
        else ""
    )
    return accuracy_exhibit(
        f"Validation accuracy of vision transformers on {SET_NAMES[dataset]} while they train, and "
        f"test accuracy at the end: {geometries}. {printed}{_SHOWN}",
        studies=(Study(dataset, families),),
        printed=f"Figure {number}",
        view="epochs",
        claims=claims,
    )


FIGURE_3A = accuracy_exhibit(
    "Test accuracy of the text classifier on IMDB (width 128, 2 layers, 8 heads of dimension 2, 3, "
    f"4, 8, 16), and rank before training. {_SHOWN}",
    studies=(REVIEWS,),
    printed="Figures 3a and 3b",
    claims=heads_claims,
)

FIGURE_4 = accuracy_exhibit(
    "Test accuracy of vision transformers on CIFAR-10, width 384, with 1 to 16 heads that share "
    f"the width, and rank before training; hollow: published in Table 3. {_SHOWN}",
    studies=(Study("cifar10", WIDTHS[1:]),),
    printed="Figure 4",
    claims=width_claims,
)

FIGURE_7 = _by_epoch(7, "cifar10", WIDTHS)
FIGURE_8 = _by_epoch(8, "cifar100", WIDTHS)
FIGURE_9 = _by_epoch(9, "svhn", WIDTHS)

FIGURE_10 = accuracy_exhibit(
    "Test accuracy of vision transformers on CIFAR-10, width 192, with 8 heads of dimension 2 to "
    f"32, and rank before training. {_SHOWN}",
    studies=(Study("cifar10", HEADS[1:]),),
    printed="Figure 10",
    claims=heads_claims,
)

FIGURE_11 = _by_epoch(11, "cifar10", HEADS)
FIGURE_12 = _by_epoch(12, "cifar100", HEADS)
FIGURE_13 = _by_epoch(13, "svhn", HEADS)

TABLE_3 = accuracy_exhibit(
    "Test accuracy of vision transformers on CIFAR-10, CIFAR-100 and SVHN, width 192 and 384, with "
    "1 to 16 heads that share the width, and rank before training.",
    studies=tuple(Study(dataset, WIDTHS) for dataset in ("cifar10", "cifar100", "svhn")),
    printed="Table 3",
    claims=width_claims,
    compared=True,
)
