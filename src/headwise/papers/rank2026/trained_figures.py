"""Figures 3a, 4, 7 to 13 and Table 3: accuracy after training beside rank at initialisation."""

from __future__ import annotations

from headwise.papers.exhibit import Exhibit
from headwise.papers.rank2026.accuracy_and_rank import accuracy_exhibit
from headwise.papers.rank2026.accuracy_claims import heads_claims, width_claims
from headwise.papers.rank2026.recipes import HEADS, REVIEWS, WIDTHS, Study

_NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}
_SHOWN = (
    "Means over seeds, with a band of one standard deviation of a seed where the head dimension is "
    "the axis. Rank over length in the first layer at initialisation: N(0, 1) weights, and the "
    "model's own; bands of one standard deviation of single matrices."
)


def _widths(number: int, dataset: str) -> Exhibit:
    name = _NAMES[dataset]
    return accuracy_exhibit(
        f"figure_{number}",
        f"Figure {number}: accuracy on {name} by epoch, for two widths and five numbers of heads",
        f"Validation accuracy of vision transformers on {name}, width 192 and 384, with 1 to 16 "
        f"heads that share the width. {_SHOWN}",
        studies=(Study(dataset, WIDTHS),),
        printed=f"Figure {number}",
        view="epochs",
        claims=width_claims,
    )


def _heads(number: int, dataset: str) -> Exhibit:
    name = _NAMES[dataset]
    return accuracy_exhibit(
        f"figure_{number}",
        f"Figure {number}: accuracy on {name} by epoch, for 4 and 8 heads of five dimensions",
        f"Validation accuracy of vision transformers on {name}, width 192, with 4 and 8 heads of "
        f"dimension 2 to 32. {_SHOWN}",
        studies=(Study(dataset, HEADS),),
        printed=f"Figure {number}",
        view="epochs",
        claims=heads_claims,
    )


FIGURE_3A = accuracy_exhibit(
    "figure_3a",
    "Figures 3a and 3b: accuracy and rank on IMDB against the head dimension",
    "Test accuracy of the text classifier on IMDB (width 128, 2 layers, 8 heads of dimension 2, 3, "
    f"4, 8, 16), and rank before training. {_SHOWN}",
    studies=(REVIEWS,),
    printed="Figures 3a and 3b",
    claims=heads_claims,
)

FIGURE_4 = accuracy_exhibit(
    "figure_4",
    "Figure 4: accuracy and rank on CIFAR-10, the width fixed",
    "Test accuracy of vision transformers on CIFAR-10, width 384, with 1 to 16 heads that share "
    f"the width, and rank before training; hollow: printed in Table 3. {_SHOWN}",
    studies=(Study("cifar10", WIDTHS[1:]),),
    printed="Figure 4",
    claims=width_claims,
)

FIGURE_7 = _widths(7, "cifar10")
FIGURE_8 = _widths(8, "cifar100")
FIGURE_9 = _widths(9, "svhn")

FIGURE_10 = accuracy_exhibit(
    "figure_10",
    "Figure 10: accuracy and rank on CIFAR-10 against the head dimension, 8 heads",
    "Test accuracy of vision transformers on CIFAR-10, width 192, with 8 heads of dimension 2 to "
    f"32, and rank before training. {_SHOWN}",
    studies=(Study("cifar10", HEADS[1:]),),
    printed="Figure 10",
    claims=heads_claims,
)

FIGURE_11 = _heads(11, "cifar10")
FIGURE_12 = _heads(12, "cifar100")
FIGURE_13 = _heads(13, "svhn")

TABLE_3 = accuracy_exhibit(
    "table_3",
    "Table 3: final accuracy for two widths and five numbers of heads",
    "Test accuracy of vision transformers on CIFAR-10, CIFAR-100 and SVHN, width 192 and 384, with "
    "1 to 16 heads that share the width, and rank before training.",
    studies=tuple(Study(dataset, WIDTHS) for dataset in _NAMES),
    printed="Table 3",
    claims=width_claims,
    compared=True,
)
