"""Show the answer of a trial: sentences, a table, a figure of the curves, an HTML page."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.report import Section, Table, inline_svg, page
from headwise.report.figures import COLOURS, MARKERS, in_style
from headwise.report.tables import counted
from headwise.trials.candidates import name_of
from headwise.trials.prediction import SURPRISE, most_stated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headwise.trials.result import Entrant, Trial

#: What the columns of the table count.
COSTS = (
    "Parameters are those of one attention layer; KV bytes are per token and layer, in 16-bit "
    "numbers."
)
FRONT = (
    "On the Pareto front are geometries that no other one beats in score, parameters and KV bytes "
    "at once."
)

#: The columns of a table that is too wide for the screen, in two tables.
HALVES = ((0, 1, 2, 3), (0, 4, 5, 6))

#: The share of the training before which probabilities were worse than equal chances on recorded
#: curves (``benchmarks.advice.trial_calibration``).
RELIABLE_FROM = 0.25

#: Half width of the bars of the predictions, in standard errors: 90 %.
BARS = 1.645


def verdict(found: Trial) -> str:
    """The answer in one sentence."""
    best = found.best
    if not found.learned:
        return (
            f"Nothing was learned: no geometry has a lower {found.measure} after "
            f"{counted(found.full, 'step')} than a constant prediction, {found.constant:.4f}."
        )
    limit = most_stated(len(found.entrants))
    capped = found.steps[-1] < found.full and f"{best.probability:.2f}" == f"{limit:.2f}"
    return (
        f"{name_of(best.geometry)} ({_named_by(found)}) has the lowest {_scored(found)} "
        f"after {counted(found.full, 'step')}. "
        f"It is the best with probability {best.probability:.2f}"
        + (", the most that is stated before the end of the training." if capped else ".")
    )


def _scored(found: Trial) -> str:
    """What the scores are: measured if every geometry was trained to the end."""
    measured = found.finished and all(one.steps == found.full for one in found.entrants)
    return found.measure if measured else f"predicted {found.measure}"


def interval(found: Trial, one: Entrant) -> tuple[float, float]:
    """One standard error below and above the predicted score, within the scores there can be."""
    # The true score lies within the limits, so what is cut off has no coverage.
    most = 1.0 if found.measure == "error rate" else np.inf
    return max(0.0, one.predicted - one.error), min(most, one.predicted + one.error)


def _score(found: Trial, one: Entrant) -> str:
    """The predicted score with its interval; limits are shown without digits."""
    low, high = (f"{e:.0f}" if e in (0.0, 1.0) else f"{e:.4f}" for e in interval(found, one))
    return f"{one.predicted:.4f} ({low} to {high})"


def legend(found: Trial) -> list[str]:
    """What the columns of the table mean."""
    ends = "0 and 1" if found.measure == "error rate" else "0"
    lines = [
        f"In brackets: one standard error below and above the score, cut off at {ends}. It is the "
        "error of differences between geometries, which share data and seeds."
    ]
    if found.measure == "relative error":
        lines.append(
            "The relative error is the mean squared error divided by the variance of the labels."
        )
    if not found.learned:
        return [*lines, f"{COSTS} Probabilities and the Pareto front are left out."]
    return [*lines, f"{COSTS} {FRONT}"]


def _named_by(found: Trial) -> str:
    """What the numbers in the name of a geometry are."""
    apart = any(one.geometry.v_rank != one.geometry.qk_rank for one in found.entrants)
    return "heads × rank / value rank" if apart else "heads × rank"


def remarks(found: Trial) -> list[str]:
    """What a reader must know besides."""
    lines = []
    if not found.learned:
        lines.append(
            "Train for more steps or at another rate, or check that inputs and targets belong "
            "together. The order of the geometries means nothing."
        )
    lines += _how_far(found)
    return lines + _what_holds(found) if found.learned else lines


def _how_far(found: Trial) -> list[str]:
    """What was not trained to the end, or not with every seed."""
    lines, last = [], found.steps[-1]
    if not found.finished and last < found.full:
        lines.append(
            f"Time ran out at step {last:,} of {found.full:,}: the scores at the full length are "
            "extrapolated."
        )
    elif not found.finished:
        lines.append("Time ran out before the other seeds: the answer rests on the first seed.")
    if any(one.steps < found.full for one in found.entrants):
        lines.append("Geometries that stopped early are predicted from the first seed.")
    return lines


def _what_holds(found: Trial) -> list[str]:
    """What probabilities and costs are worth; only said if something was learned."""
    lines, last, count = [], found.steps[-1], len(found.entrants)
    if last < found.full:
        lines.append(
            f"Until a geometry is trained to the end, {SURPRISE:.0%} of the probability is spread "
            f"equally. With {count} geometries all probabilities lie from {SURPRISE / count:.2f} "
            f"to {most_stated(count):.2f}."
        )
    if last < RELIABLE_FROM * found.full:
        lines.append(
            "Probabilities stated before a quarter of the training are not reliable: use them to "
            "choose what to train next."
        )
    cheaper = [
        one
        for one in found.entrants
        if one.on_front and one.cache_bytes < found.best.cache_bytes and one is not found.best
    ]
    for one in cheaper:
        lines.append(
            f"{name_of(one.geometry)} needs {one.cache_bytes / found.best.cache_bytes:.0%} of "
            f"the KV bytes of {name_of(found.best.geometry)}; its {found.measure} is "
            f"{one.predicted - found.best.predicted:.4f} higher."
        )
    lines.append(
        "Probabilities concern this data and this length of training. Another learning rate or "
        "longer training can change the order."
    )
    return lines


def table(found: Trial) -> Table:
    """One row for each geometry, the lowest predicted score first."""
    columns = ("geometry", "steps", _scored(found), "probability best")
    learned = found.learned
    rows = tuple(
        (
            name_of(one.geometry),
            one.steps,
            _score(found, one),
            f"{one.probability:.2f}" if learned else None,
            one.parameters,
            one.cache_bytes,
            "yes" if learned and one.on_front else None,
        )
        for one in found.entrants
    )
    return Table((*columns, "parameters", "KV bytes", "Pareto front"), rows)


def text(found: Trial, width: int) -> str:
    """The whole answer in lines of at most this width; a wide table becomes two."""

    def filled(words: str) -> str:
        return textwrap.fill(words, width, break_on_hyphens=False)

    whole = table(found)
    tables = [whole.text()]
    if max(map(len, tables[0].splitlines())) > width:
        tables = [
            Table(
                tuple(whole.columns[k] for k in half),
                tuple(tuple(row[k] for k in half) for row in whole.rows),
            ).text()
            for half in HALVES
        ]
    notes = map(filled, [*legend(found), *remarks(found)])
    return "\n".join([filled(verdict(found)), "", "\n\n".join(tables), "", *notes])


def document(found: Trial) -> str:
    """The whole answer as an HTML page that needs no other file."""
    return page(
        "Trial of head geometries",
        verdict(found),
        [
            Section("Geometries", (*remarks(found), *legend(found)), tables=(table(found),)),
            Section("Curves", figures=(inline_svg(figure(found)),)),
        ],
    )


def figure(found: Trial) -> Any:
    """Draw the curves; if something was learned, also the probabilities and score against cost."""
    from matplotlib.figure import Figure

    costs = len({(one.parameters, one.cache_bytes) for one in found.entrants}) > 1
    ratios = [2.6, 1.1, 1.6][: 1 if not found.learned else 2 + costs]
    with in_style():
        drawn = Figure(figsize=(2.3 * sum(ratios), 4.0), layout="constrained")
        axes = drawn.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
        for draw, own in zip((_curves, _probabilities, _front), axes, strict=False):
            draw(own, found)
    return drawn


def _look(place: int) -> dict[str, Any]:
    """Colour and marker of an entrant; colours come again with other markers."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def _curves(axes: Axes, found: Trial) -> None:
    for place, (one, curve) in enumerate(zip(found.entrants, found.curves, strict=True)):
        scores, look = np.array(curve, dtype=float), _look(place)
        steps, seeds = np.array(found.steps[: len(curve)]), scores.shape[1]
        mean = scores.mean(1)
        axes.plot(steps, mean, lw=1.5, ms=3.5, label=name_of(one.geometry), **look)
        if seeds > 1:
            spread = scores.std(1, ddof=1) / np.sqrt(seeds)
            axes.fill_between(steps, mean - spread, mean + spread, alpha=0.15, color=look["color"])
        if one.steps < found.full:
            axes.plot(
                [steps[-1], found.full], [mean[-1], one.predicted], ":", lw=1, c=look["color"]
            )
        shift = found.full * 1.06 ** (1 + place)
        low, high = interval(found, replace(one, error=BARS * one.error))
        bars = [[one.predicted - low], [high - one.predicted]]
        axes.errorbar(shift, one.predicted, bars, mfc="white", capsize=2, ms=5, **look)
    axes.axvline(found.full, color="#888888", lw=0.8, ls="--")
    axes.set_xscale("log")
    ends = [found.full // 8, found.full // 4, found.full // 2, found.full]
    axes.set_xticks(ends, [f"{end:,}" for end in ends])
    axes.minorticks_off()
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    axes.set_xlabel("training steps (right of the dashed line: predictions with 90% bars)")
    axes.set_ylabel(f"test {found.measure}")
    axes.set_title("Learning curves", loc="left")
    axes.legend(title=_named_by(found), loc="upper right", ncols=1 + (len(found.entrants) > 5))


def _probabilities(axes: Axes, found: Trial) -> None:
    places = range(len(found.entrants))
    chances = [one.probability for one in found.entrants]
    colours = [_look(place)["color"] for place in places]
    axes.barh(list(places), chances, color=colours, height=0.6)
    for place, chance in enumerate(chances):
        axes.text(chance + 0.02, place, f"{chance:.2f}", va="center", fontsize=9)
    axes.set_yticks(list(places), [name_of(one.geometry) for one in found.entrants])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.15)
    axes.set_xticks([0, 0.5, 1])
    axes.set_xlabel("probability of being best")
    axes.grid(axis="y", visible=False)
    axes.set_title("Which is best?", loc="left")


def _front(axes: Axes, found: Trial) -> None:
    scores = [one.predicted for one in found.entrants]
    near = 0.04 * (max(scores) - min(scores))
    for place, one in enumerate(found.entrants):
        look = _look(place)
        beside = [other for other in found.entrants[:place] if other.cache_bytes == one.cache_bytes]
        shift = 8 * sum(abs(other.predicted - one.predicted) < near for other in beside)
        face = look["color"] if one.on_front else "white"
        axes.plot(one.cache_bytes, one.predicted, mfc=face, ms=8, ls="", **look)
        words = f"{name_of(one.geometry)}, {one.parameters / 1000:.1f}k"
        at = (one.cache_bytes, one.predicted)
        axes.annotate(words, at, xytext=(8, -3 - shift), textcoords="offset points", fontsize=8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.45)
    axes.margins(y=0.15)
    axes.set_xlabel("KV cache bytes per token and layer")
    axes.set_ylabel(_scored(found))
    axes.set_title("Score against cost", loc="left")
    axes.text(
        0.02,
        0.01,
        "filled: Pareto front; k: parameters / 1000",
        fontsize=8,
        transform=axes.transAxes,
        color="#555555",
    )
