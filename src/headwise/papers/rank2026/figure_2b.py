"""Figure 2b: rank on the patches of real images, in a model at initialisation."""

from __future__ import annotations

from headwise.experiments.real_rank import ImageRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_sweep import BARRIER, HEAD_DIMS, NEAR, law_sweep, levels_near
from headwise.papers.kinds.real_ranks import (
    SET_NAMES,
    Points,
    alike_claims,
    curve_claims,
    full_claims,
    present_readings,
    real_sweep,
    saturation_claims,
)
from headwise.runs import Spec

SETS = ("cifar10", "cifar100", "svhn")

#: Where the paper says it.
PRINTED_AT = "§2.2, Figure 2b"

#: Patches of an image of 32 × 32.
TOKENS = 64

#: At laptop scale there are as many heads of every dimension: few narrow ones, more wide ones.
HEADS = 8


def _paper() -> list[Spec]:
    return [*real_sweep(ImageRank, {}, HEAD_DIMS, dataset=SETS), *_law(HEAD_DIMS)]


def _laptop() -> list[Spec]:
    return [*real_sweep(ImageRank, {"heads": HEADS}, HEAD_DIMS, dataset=SETS), *_law(HEAD_DIMS)]


def _miniature() -> list[Spec]:
    sizes = {"dataset": "digits", "patch": 2, "width": 32, "batch": 4}
    return [
        *real_sweep(ImageRank, sizes, (2, 8, 32), seeds=(0, 1)),
        *law_sweep({"tokens": 16}, (2, 8, 32)),
    ]


def _law(head_dims: tuple[int, ...]) -> list[Spec]:
    return law_sweep({"tokens": TOKENS}, head_dims)


def _claims(points: Points) -> list[Claim]:
    return [
        *saturation_claims(points, SET_NAMES, PRINTED_AT),
        *curve_claims(
            points,
            SET_NAMES,
            "rank stays below 0.63 of the length.",
            lambda found: max(point.mean for point in found.values()) <= BARRIER,
            f"{PRINTED_AT}: capped",
        ),
        *curve_claims(
            points,
            SET_NAMES,
            f"rank levels off near 0.63, within {NEAR}.",
            levels_near,
            f"{PRINTED_AT}, with §2.1; threshold {NEAR} chosen by us",
        ),
        *alike_claims(points, "the three sets have similar curves", PRINTED_AT),
        *full_claims(points, SET_NAMES),
    ]


def _present(answers: Answers) -> Presentation:
    return present_readings(answers, "dataset", SET_NAMES, _claims, (_OPEN, _WHY))


_OPEN = (
    "The paper states neither the patch size nor the initialisation. Patches of 4 × 4 give 64 "
    "tokens. With N(0, 1) weights the encoder block of Section 2.1 reads patches times an "
    "N(0, 1) embedding, without positions. The model's own initialisation is that of the "
    "vision transformer we train: U(±1/√fan-in), a class token, positions, a norm before "
    "attention."
)
_WHY = (
    "The law assumes independent, centred tokens. Patches of one image share its colours and "
    "brightness, so their queries and keys point the same way, and few keys win most rows. At "
    "the model's own initialisation logits are small: attention is nearly uniform, and every "
    "matrix is full in rank at ε = 1e-8 once heads are not narrow."
)

FIGURE_2B = Exhibit(
    caption="First-layer rank over length on standardised images of CIFAR-10, CIFAR-100 and "
    "SVHN (width 384, T = √d_h, ε = 1e-8, float64), for N(0, 1) weights (left) and the model's "
    "own initialisation (right). Bands: one standard deviation of single matrices. Thin line: "
    "the finite law of hardmax for independent queries and keys.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 2b",
)
