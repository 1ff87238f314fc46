"""Figure 2c: rank on mixed inputs, whose entries are not identically distributed."""

from __future__ import annotations

from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled
from headwise.papers.kinds.rank_sweep import (
    SMALLER,
    curves_and_law,
    levels_near,
    levels_off,
    miniature_sweep,
    points_by,
    printed_sweep,
    rank_panel,
)
from headwise.report import Panel, Table
from headwise.runs import Spec

#: The paper's name of each mixture, and the two things its "rand" may mean.
MIXTURES = {
    "rand_randn": (
        "half uniform(-1,1), half normal(0,1)",
        "half uniform(0,1), half normal(0,1)",
    ),
    "rand_double_exponential": (
        "half uniform(-1,1), half laplace(0,1)",
        "half uniform(0,1), half laplace(0,1)",
    ),
}
#: The same in words, for the figure.
WORDS = {
    "rand_randn": "Half uniform, half normal inputs",
    "rand_double_exponential": "Half uniform, half Laplace inputs",
}
READINGS = ("rand is U(−1, 1)", "rand is U(0, 1)")
LAWS = tuple(inputs for pair in MIXTURES.values() for inputs in pair)

Points = dict[str, dict[Place, Pooled]]


def _paper() -> list[Spec]:
    return printed_sweep(inputs=LAWS)


def _miniature() -> list[Spec]:
    return miniature_sweep(inputs=LAWS)


def _present(answers: Answers) -> Presentation:
    points = points_by(answers, "inputs")
    return Presentation(
        panels=tuple(_panel(name, points, answers) for name in MIXTURES),
        tables=(_table(points, answers),),
        claims=_claims(points) if answers.scale is Scale.PAPER else (),
        remarks=_remarks(points, answers.scale),
    )


def _panel(name: str, points: Points, answers: Answers) -> Panel:
    readings = zip(READINGS, MIXTURES[name], strict=True)
    curves = curves_and_law(answers, {reading: points[inputs] for reading, inputs in readings})
    return rank_panel(WORDS[name], curves)


def _table(points: Points, answers: Answers) -> Table:
    rows = []
    for name, pair in MIXTURES.items():
        for inputs in pair:
            last = max(points[inputs])
            one = answers.rows(kind="measure_rank", inputs=inputs, head_dim=last)[0]
            found = points[inputs][last]
            rows.append(
                (
                    name,
                    inputs,
                    round(one["input_mean"], 3),
                    round(one["input_spread"], 3),
                    round(found.mean, 4),
                    round(found.stderr, 4),
                )
            )
    last = max(points[LAWS[0]])
    columns = ("name in the paper", "mixture", "mean of entries", "their spread")
    measured = (f"rank / length at d_h = {last}", "± standard error")
    return Table((*columns, *measured), tuple(rows), title="The exact mixtures")


def _claims(points: Points) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"{name}, {reading}: {words}", holds, "Figure 2c")
        for name, pair in MIXTURES.items()
        for reading, inputs in zip(READINGS, pair, strict=True)
        for words, holds in (
            ("rank levels off.", levels_off(points[inputs])),
            ("where identically distributed inputs do, near 0.63.", levels_near(points[inputs])),
        )
    )


def _remarks(points: Points, scale: Scale) -> tuple[str, ...]:
    stated = (
        "The mixture, exactly: the first half of every token's entries follows the uniform law "
        "and the second half the other, all entries independent. The double exponential law "
        "has scale 1 (variance 2). The paper names the mixtures and gives no formula; in many "
        "libraries rand is U(0, 1), which is not centred."
    )
    if scale is not Scale.PAPER:
        return (SMALLER, stated)
    return (stated, _match(points))


def _match(points: Points) -> str:
    fits = [all(levels_near(points[pair[i]]) for pair in MIXTURES.values()) for i in range(2)]
    matching = [reading for reading, fit in zip(READINGS, fits, strict=True) if fit]
    if len(matching) == 1:
        return (
            f"Only where {matching[0]} does rank level off as on identically distributed "
            "inputs, which is what the figure is shown for. A shared mean makes all tokens "
            "alike and keeps rank lower."
        )
    return f"{'Both' if matching else 'None'} of the two readings fit what the figure shows."


FIGURE_2C = Exhibit(
    name="rank2026/figure_2c",
    title="Figure 2c: rank against the head dimension on mixed inputs",
    caption="As Figure 1 (width 384, 100 tokens, batch 32, N(0, 1) weights, T = √d_h, "
    "ε = 1e-8, float64), for tokens whose first half of entries is uniform and second half "
    "Gaussian (left) or double exponential (right). Bands: one standard deviation of single "
    "matrices. Thin line: the finite law of hardmax for independent queries and keys.",
    questions={Scale.MINIATURE: _miniature, Scale.PAPER: _paper},
    present=_present,
    printed="Figure 2c",
)
