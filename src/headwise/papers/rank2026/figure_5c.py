"""Figure 5c: rank in every layer of a deep stack, and how fast its tokens become alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwise.experiments.measure_rank import MeasureRank
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, grouped
from headwise.papers.kinds.rank_rows import Coordinate, Pooled, falls, pooled_by, rank_curve
from headwise.papers.kinds.rank_sweep import (
    HEAD_DIMS,
    SMALLER,
    levels_near,
    rank_panel,
    rank_sweep,
)
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Spec

LAYERS = tuple(range(1, 9))

#: What a layer has besides attention; a layer norm follows each part.
PARTS: dict[str, dict[str, Any]] = {
    "skip and MLP": {"skip": True, "mlp_width": 512},
    "skip, no MLP": {"skip": True, "mlp_width": 0},
    "no skip, MLP": {"skip": False, "mlp_width": 512},
    "neither": {"skip": False, "mlp_width": 0},
}
#: How the weights of those stacks begin, and how the two are called.
WEIGHTS = {"normal(0,1)": "N(0, 1) weights", "xavier": "Xavier weights"}
COLLAPSE_HEAD_DIM = 64
COLLAPSE_SEEDS = (0, 1, 2, 3)

#: How far tokens are from equal, by layer.
Found = dict[int, float]

Points = dict[int, dict[Coordinate, Pooled]]


def _paper() -> list[Spec]:
    return [
        *rank_sweep({"layers": LAYERS}, HEAD_DIMS),
        *_stacks({"layers": LAYERS}, COLLAPSE_HEAD_DIM, COLLAPSE_SEEDS),
    ]


def _miniature() -> list[Spec]:
    sizes = {"width": 32, "tokens": 25, "batch": 4, "layers": (1, 2, 3)}
    return [*rank_sweep(sizes, (2, 8)), *_stacks(sizes, 8, (0,))]


def _stacks(fixed: Mapping[str, Any], head_dim: int, seeds: Sequence[int]) -> list[Spec]:
    """One stack for each choice of weights and parts."""
    chosen = dict(fixed) | {"head_dim": head_dim}
    return [
        spec
        for parts in PARTS.values()
        for spec in grid(MeasureRank, chosen | parts, weights=tuple(WEIGHTS), seed=seeds)
    ]


def _present(answers: Answers) -> Presentation:
    usual = answers.rows(**PARTS["skip and MLP"], weights="normal(0,1)")
    points = {layer: pooled_by(own, "head_dim") for layer, own in grouped(usual, "layer").items()}
    curves = [rank_curve(f"layer {layer}", found) for layer, found in points.items()]
    collapse = {
        weights: {
            name: _collapse(answers, parts | {"weights": weights}) for name, parts in PARTS.items()
        }
        for weights in WEIGHTS
    }
    panels = tuple(_collapse_panel(WEIGHTS[weights], found) for weights, found in collapse.items())
    return Presentation(
        panels=(rank_panel("Deeper layers are lower in rank", curves), *panels),
        tables=(_ranks(points), _rates(collapse)),
        claims=_claims(points, collapse) if answers.scale is Scale.PAPER else (),
        remarks=(_lower(points), *_REMARKS) if answers.scale is Scale.PAPER else (SMALLER,),
    )


def _collapse(answers: Answers, parts: Mapping[str, Any]) -> Found:
    """Layer by layer, how far its tokens are from equal, averaged over seeds."""
    (head_dim,) = {row["head_dim"] for row in answers.rows(**PARTS["neither"])}
    rows = answers.rows(**parts, head_dim=head_dim)
    found = sorted(grouped(rows, "layer").items())
    return {layer: sum(row["collapse"] for row in own) / len(own) for layer, own in found}


def _collapse_panel(title: str, collapse: dict[str, Found]) -> Panel:
    curves = tuple(Curve(name, Line.of(found)) for name, found in collapse.items())
    return Panel(
        f"Tokens become alike: {title}",
        "layer",
        "distance from equal tokens",
        curves,
        y_scale="log",
        x_ticks=tuple(collapse["neither"]),
    )


def _ranks(points: Points) -> Table:
    rows = (
        {"layer": layer}
        | {f"d_h {r}": f"{one.mean:.3f} ± {one.stderr:.3f}" for r, one in found.items()}
        for layer, found in points.items()
    )
    return Table.of(rows, title="Rank / length, ± standard error")


def _rates(collapse: dict[str, dict[str, Found]]) -> Table:
    rows = (
        {
            "weights": WEIGHTS[weights],
            "what a layer has": name,
            **{f"layer {layer}": f"{value:.3g}" for layer, value in found.items()},
            "factor per layer": round(_rate(found), 3),
        }
        for weights, stacks in collapse.items()
        for name, found in stacks.items()
    )
    return Table.of(rows, title="‖X − mean‖_F / ‖X‖_F of the tokens that enter a layer")


def _rate(found: Found) -> float:
    """The factor by which each layer multiplies the distance, on geometric average."""
    first, last = min(found), max(found)
    return (found[last] / found[first]) ** (1 / (last - first))


def _claims(points: Points, collapse: dict[str, dict[str, Found]]) -> tuple[Claim, ...]:
    by_depth: list[dict[Coordinate, Pooled]] = [
        {layer: points[layer][r] for layer in points} for r in points[1]
    ]
    last = {
        weights: {name: found[max(found)] for name, found in stacks.items()}
        for weights, stacks in collapse.items()
    }
    return (
        Claim(
            "Deeper layers tend to be lower in rank: averaged over head dimensions, the last layer "
            "has at most half the rank of the first.",
            2 * sum(own[max(own)].mean for own in by_depth) <= sum(own[1].mean for own in by_depth),
            "§B.3, Figure 5c; factor of one half chosen by us",
        ),
        Claim(
            "Every layer has the same pattern: rank levels off near 0.63 (at the largest d_h, "
            "within 0.05).",
            all(levels_near(found) for found in points.values()),
            "§2.3, §3.2; threshold 0.05 chosen by us",
        ),
        Claim(
            "The last layer is below the first at every head dimension, by three standard errors.",
            all(falls({1: found[1], 2: found[max(found)]}) for found in by_depth),
        ),
        Claim(
            "No layer is higher than the one before it by more than three standard errors.",
            all(falls(found) for found in by_depth),
        ),
        *(
            Claim(
                f"{WEIGHTS[weights]}: skip connections at least halve the collapse, with the MLP "
                "and without.",
                found["skip and MLP"] >= 2 * found["no skip, MLP"]
                and found["skip, no MLP"] >= 2 * found["neither"],
            )
            for weights, found in last.items()
        ),
    )


def _lower(points: Points) -> str:
    """At which head dimensions the last layer is lower than the first."""
    last = max(points)
    dims = [r for r in points[1] if falls({1: points[1][r], 2: points[last][r]})]
    shown = ", ".join(map(str, dims)) or "no head dimension"
    return (
        f"Layer {last} is lower in rank than layer 1, by more than three standard errors, at "
        f"d_h = {shown}."
    )


_REMARKS = (
    "Every layer is attention, then a ReLU MLP, each with a skip connection and a layer norm "
    "after it; every weight is N(0, 1). Matrices of one stack share its weights and inputs, and "
    "the standard errors allow for that. When tokens are nearly equal, so are the logits of a "
    "row: attention turns soft, and the rank of the last layers may rise again.",
    "Deep layers are low in rank because tokens become alike. Under N(0, 1) weights the MLP "
    "causes this: without it tokens and rank hardly change. Skip connections do "
    "nothing there, since what is added to them is far larger. With weights of usual size "
    "(Xavier) the reverse holds: skip connections hold tokens apart, and without them "
    "all tokens are equal after a few layers, with the MLP or without. The two right panels "
    f"have head dimension {COLLAPSE_HEAD_DIM} and are averaged over seeds.",
)

FIGURE_5C = Exhibit(
    caption="As Figure 1 (width 384, MLP 512, 100 tokens, batch 32, N(0, 1) weights and inputs, "
    "T = √d_h, ε = 1e-8, float64), for each layer of an eight-layer stack at initialisation. "
    "Bands: one standard deviation of single matrices. Second and third: how far the "
    "tokens entering a layer are from all being equal, ‖X − mean‖_F / ‖X‖_F, with and without "
    "skip connections and MLP.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 5c",
)
