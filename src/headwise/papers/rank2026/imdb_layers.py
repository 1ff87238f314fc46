"""What Figures 3c and 3d share: rank on IMDB in the first two layers, for four widths."""

from __future__ import annotations

from collections.abc import Callable

from headwise.experiments.real_rank import TextRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_sweep import BARRIER, NEAR, levels_near
from headwise.papers.kinds.real_ranks import (
    FULL,
    Points,
    curve_claims,
    full_claims,
    present_readings,
    real_sweep,
    saturation_claims,
)
from headwise.runs import Spec

WIDTHS = (32, 128, 256, 512)
LABELS = {width: f"width {width}" for width in (8, 16, *WIDTHS)}

#: The published head dimensions, and two beyond them to see where rank levels off.
HEAD_DIMS = (2, 3, 4, 8, 16, 32, 64)

#: The critical head dimension that the paper finds on IMDB.
CRITICAL = 8

#: Both layers are measured at once, so that the two figures share their answers.
FIXED = {"dataset": "imdb", "heads": 8, "layers": (1, 2)}


def _paper() -> list[Spec]:
    return real_sweep(TextRank, FIXED | {"tokens": 256}, HEAD_DIMS, width=WIDTHS)


def _laptop() -> list[Spec]:
    sizes = FIXED | {"tokens": 128, "batch": 8}
    return real_sweep(TextRank, sizes, HEAD_DIMS, width=WIDTHS)


def _miniature() -> list[Spec]:
    sizes = FIXED | {"dataset": "digits", "tokens": 32, "batch": 4, "heads": 2}
    return real_sweep(TextRank, sizes, (2, 4, 8), seeds=(0, 1), width=(8, 16))


def _presenter(layer: int, printed: str) -> Callable[[Answers], Presentation]:
    def present(answers: Answers) -> Presentation:
        def claims(points: Points) -> list[Claim]:
            return [
                *saturation_claims(points, LABELS, printed),
                *(_first_layer_claims(answers, points) if layer == 1 else ()),
                *full_claims(points, LABELS),
            ]

        return present_readings(answers, "width", LABELS, claims, (_OPEN, _WHY), layer=layer)

    return present


def _first_layer_claims(answers: Answers, points: Points) -> list[Claim]:
    """What is published of the first layer alone, and what we add."""
    rows = answers.rows(layer=1, start="normal(0,1)")
    share = sum(row["distinct"] for row in rows) / len(rows)
    last = max(HEAD_DIMS)
    return [
        *curve_claims(
            points,
            LABELS,
            f"rank is saturated from d_h = {CRITICAL} on, with at least {FULL:.0%} of the rank at "
            f"d_h = {last}.",
            lambda found: found[CRITICAL].mean >= FULL * found[last].mean,
            f"§4.1, Figure 3b; widths, {last} and {FULL:.0%} are ours",
        ),
        # Equal words are equal tokens, so their share lowers the level.
        *curve_claims(
            {"normal(0,1)": points["normal(0,1)"]},
            LABELS,
            "rank at the largest head dimension is near 0.63 of the different words, "
            f"{BARRIER * share:.2f} of the length, within {NEAR}.",
            lambda found: levels_near(found, BARRIER * share),
        ),
    ]


_OPEN = (
    "The paper states neither the number of heads nor the length of the texts nor the "
    "initialisation. Here there are 8 heads, and reviews with at least as many words as shown, "
    "half of them from each end, so that nothing is padding. The vocabulary is the 20,000 most "
    "frequent words of the training part. With N(0, 1) weights there are no positions, as in "
    "Section 2.1, and equal words are equal tokens."
)
_WHY = (
    "A repeated word adds equal rows and equal columns, so the number of different words bounds "
    "the rank in the first layer. At the model's own initialisation logits are small and "
    "positions tell equal words apart, so that matrices reach full rank."
)


def layer_exhibit(letter: str, layer: int) -> Exhibit:
    """Figure 3c or 3d."""
    ordinal = ("first", "second")[layer - 1]
    return Exhibit(
        caption=f"Rank over length in the {ordinal} layer on IMDB reviews, for four embedding "
        "widths (8 heads, T = √d_h, ε = 1e-8, float64), for N(0, 1) weights (left) and the "
        "model's own initialisation (right). Bands: one standard deviation of single matrices.",
        questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop, Scale.PAPER: _paper},
        present=_presenter(layer, f"§4.1, Figure 3{letter}"),
        printed=f"Figure 3{letter}",
    )


FIGURE_3C = layer_exhibit("c", layer=1)
FIGURE_3D = layer_exhibit("d", layer=2)
