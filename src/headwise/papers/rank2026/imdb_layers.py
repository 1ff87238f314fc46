"""What Figures 3c and 3d share: rank on IMDB in the first two layers, for four widths."""

from __future__ import annotations

from collections.abc import Callable

from headwise.experiments.real_rank import TextRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_sweep import BARRIER, NEAR, SMALLER
from headwise.papers.kinds.real_ranks import (
    FULL,
    READINGS,
    Points,
    full_claims,
    levels_table,
    part_used,
    points_by_reading,
    reading_panels,
    real_sweep,
    saturation_claims,
    sizes_remark,
)
from headwise.runs import Spec

WIDTHS = (32, 128, 256, 512)
LABELS = {width: f"width {width}" for width in (8, 16, *WIDTHS)}

#: The printed head dimensions, and two beyond them to see where rank levels off.
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


def _presenter(layer: int, place: str) -> Callable[[Answers], Presentation]:
    def present(answers: Answers) -> Presentation:
        points = points_by_reading(answers, "width", layer=layer)
        real = answers.scale is not Scale.MINIATURE
        claims = (
            *saturation_claims(points, LABELS, place),
            *_early_claims(points, layer),
            *_distinct_claims(answers, points, layer),
            *full_claims(points, LABELS),
        )
        remarks = (part_used(answers.rows()), sizes_remark(answers), _OPEN, _WHY)
        return Presentation(
            panels=tuple(reading_panels(answers, points, LABELS)),
            tables=(levels_table(answers, points, LABELS, "width", layer=layer),),
            claims=claims if real else (),
            remarks=remarks if real else (SMALLER, *remarks[:2]),
        )

    return present


def _early_claims(points: Points, layer: int) -> list[Claim]:
    """The head dimension from which the paper finds no more gain; it prints one for layer 1."""
    if layer != 1:
        return []
    return [
        Claim(
            f"{words[0].upper()}{words[1:]}, {LABELS[width]}: rank is saturated from d_h = "
            f"{CRITICAL} on, with at least {FULL:.0%} of the rank at d_h = {max(found)}.",
            found[CRITICAL].mean >= FULL * found[max(found)].mean,
            f"§4.1, Figure 3b; {FULL:.0%} is our measure",
        )
        for start, words in READINGS.items()
        for width, found in points[start].items()
    ]


def _distinct_claims(answers: Answers, points: Points, layer: int) -> list[Claim]:
    """Ours: equal words are equal tokens, so their share lowers the level in the first layer."""
    if layer != 1:
        return []
    rows = answers.rows(layer=1, start="normal(0,1)")
    share = sum(row["distinct"] for row in rows) / len(rows)
    return [
        Claim(
            f"N(0, 1) weights, {LABELS[width]}: rank at the largest head dimension is near 0.63 "
            f"of the different words, {BARRIER * share:.2f} of the length, within {NEAR}.",
            abs(found[max(found)].mean - BARRIER * share) <= NEAR,
        )
        for width, found in points["normal(0,1)"].items()
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
    "positions tell equal words apart, so that matrices come to full rank."
)


def layer_exhibit(letter: str, layer: int) -> Exhibit:
    """Figure 3c or 3d."""
    ordinal = ("first", "second")[layer - 1]
    return Exhibit(
        name=f"rank2026/figure_3{letter}",
        title=f"Figure 3{letter}: rank on IMDB in the {ordinal} layer, for four widths",
        caption=f"Rank over length in the {ordinal} layer on IMDB reviews, for four embedding "
        "widths (8 heads, T = √d_h, ε = 1e-8, float64), for N(0, 1) weights (left) and the "
        "model's own initialisation (right). Bands: one standard deviation of single matrices.",
        questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop, Scale.PAPER: _paper},
        present=_presenter(layer, f"§4.1, Figure 3{letter}"),
        printed=f"Figure 3{letter}",
    )


FIGURE_3C = layer_exhibit("c", layer=1)
FIGURE_3D = layer_exhibit("d", layer=2)
