"""Write rank-and-accuracy.md, the verdict on rank and accuracy, from recorded rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from accuracy_verdict import (
    CONSTANT,
    OUR_RULE,
    PAPER_RULES,
    Setting,
    recorded_settings,
    verdict_on,
)
from headwise.papers.kinds.rank_sweep import capital
from headwise.papers.saturation import CONFIDENCE, MARGIN
from headwise.report import Table

_HEAD = """# Does rank predict accuracy?

This page tests the rank paper's practical claim on real data: look at the rank of attention before
training, and take the head dimension d_h at which it first saturates, because accuracy after
training saturates there too. `python docs/make_exhibits.py` writes the page from recorded rows.
"""

_METHOD = f"""## How it is judged

With the number of heads fixed, accuracy *stops improving* at the smallest d_h that all larger ones
exceed, on average, by at most {MARGIN:g} standard deviations of one seed, pooled over all d_h of
the setting. With the width fixed, heads grow fewer as d_h grows, and the question is the *best*
d_h. The interval holds {CONFIDENCE:.0%} of the answers when mean accuracies are drawn again with
the noise of their seeds. A setting is undecided with fewer than two seeds or three head dimensions,
if head dimensions differ no more than seeds do (F test, 5 %), or if the interval is the whole grid.

A rule agrees if its d_h lies in the interval. The paper's rule takes the row above the first gain
of rank / length of at most 0.013, which its Table 1 needs. It does not say how weights start on
real data, so both readings are judged: N(0, 1) weights, and the model's own initialisation. Our
rule is that of `headwise advise`: the first d_h whose lower confidence limit over seeds reaches
90 % of the highest rank. Test accuracy is what is judged; no choice was made by it. The paper
prints no width where the number of heads is fixed, and no number of heads on IMDB; those here are
ours.
"""


def page() -> str:
    """Return the page."""
    settings, absent = recorded_settings()
    parts = [_HEAD, _answer(settings), _settings_part(settings), _predictors_part(settings)]
    parts += [_METHOD, _absent_part(absent)]
    return "\n".join(parts)


def _answer(settings: Sequence[Setting]) -> str:
    rules = Table(
        ("rule for d_h", "does accuracy stop improving there?"),
        tuple((capital(rule), verdict_on(rule, settings)) for rule in _rules()),
    )
    found = Table(("setting", "found"), tuple((one.name, _found(one)) for one in settings))
    return f"## The answer\n\n{rules.markdown()}\n\n{found.markdown()}\n"


def _rules() -> list[str]:
    return [*PAPER_RULES.values(), OUR_RULE, CONSTANT]


def _found(one: Setting) -> str:
    stop = one.stop
    if stop.head_dim is None:
        return f"undecided ({stop.reason})"
    if one.heads_fixed and stop.high == stop.grid[0]:
        return f"accuracy does not improve at all beyond d_h = {stop.grid[0]}, the smallest"
    what = "accuracy stops improving at" if one.heads_fixed else "accuracy is best at"
    return f"{what} d_h = {stop.head_dim}, interval {stop.low} to {stop.high}"


def _settings_part(settings: Sequence[Setting]) -> str:
    rows = tuple(
        (one.name, _question(one), str(one.stop), *(_cell(one, rule) for rule in _rules()))
        for one in settings
    )
    columns = ("setting", "question", "by accuracy (interval)", *map(capital, _rules()))
    words = (
        "d_h by accuracy, and by each rule with its distance in doublings and whether it lies in "
        "the interval. The last column is the median of what was found in the other settings."
    )
    return f"## Every setting\n\n{words}\n\n{Table(columns, rows).markdown()}\n"


def _question(one: Setting) -> str:
    return "stops improving" if one.heads_fixed else "best"


def _cell(one: Setting, rule: str) -> str:
    head_dim, distance = one.rules.get(rule), one.distance(rule)
    if head_dim is None:
        return "no answer"
    shown = f"above {one.stop.grid[-1]}" if math.isinf(head_dim) else f"{head_dim:g}"
    far = "" if distance is None else f" ({distance:+.1f})"
    return f"{shown}{far}, {one.verdict(rule)}"


def _predictors_part(settings: Sequence[Setting]) -> str:
    rows = tuple(
        (one.name, name, round(100 * found.error, 3), f"{found.best:.0%}", _is_best(found.best))
        for one in settings
        for name, found in one.predictors.items()
    )
    if not rows:
        return ""
    columns = (
        "setting",
        "predictor",
        "error, points of accuracy",
        "best in so many redraws",
        "verdict",
    )
    words = (
        "Each predictor is fitted as a straight line to all head dimensions but one, and predicts "
        "the accuracy of that one. Mean accuracies are drawn again with the noise of their seeds. "
        "A predictor is the best only if it has the least error in "
        f"{CONFIDENCE:.0%} of the redraws."
    )
    return f"## Simpler predictors\n\n{words}\n\n{Table(columns, rows).markdown()}\n"


def _is_best(share: float) -> str:
    if share >= CONFIDENCE:
        return "the best"
    return "not the best" if share <= 1 - CONFIDENCE else "undecided"


def _absent_part(absent: Sequence[str]) -> str:
    if not absent:
        return ""
    lines = [f"* {name}" for name in absent]
    return "\n".join(["## Not trained yet", "", *lines, ""])


def main() -> None:
    """Write the page."""
    Path(__file__).with_name("rank-and-accuracy.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
