"""The answer as a page: reasons, curves and costs in one HTML file that needs no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.advice.curves import START_WORDS, RankCurve
from headwise.advice.notes import notes
from headwise.advice.result import CLOSING, Advice, Choice, headline, named
from headwise.advice.tables import cost_table, curve_table
from headwise.report import Curve, Line, Panel, Section, draw, inline_svg, page
from headwise.report.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "How many heads, of what rank?"


def report_page(advice: Advice) -> str:
    """The whole page.

    >>> from headwise.advice.advisor import advise_numbers
    >>> text = report_page(advise_numbers(128, 64))
    >>> "<script" in text, "src=" in text, "@import" in text
    (False, False, False)
    """
    lead = (headline(advice), advice.caveat or "", f"Asked of: {advice.evidence.words}.")
    return page(TITLE, " ".join(filter(None, lead)), sections(advice), foot=CLOSING)


def fragment(advice: Advice) -> str:
    """The same for a notebook: headline, curves, costs, findings."""
    from html import escape

    words = "".join(f"<p>{escape(line)}</p>" for line in (*notes(advice), *advice.findings))
    caveat = f"<p>{escape(advice.caveat)}</p>" if advice.caveat else ""
    return (
        f"<div><p><strong>{escape(headline(advice))}</strong></p>{caveat}{rank_figure(advice)}"
        f"{cost_table(advice).html()}{words}"
        f"<p><em>{escape(CLOSING)}</em></p></div>"
    )


def sections(advice: Advice) -> list[Section]:
    """Findings with the curves, the ranked geometries with their costs, and every number."""
    ranked = tuple(
        f"{place}. {named(choice.geometry)}. {' '.join(choice.reasons)} {_costs(advice, choice)}"
        for place, choice in enumerate(advice.choices, 1)
    )
    numbers = (
        "Mean of rank / length, ± the half width of the band in which the mean of twenty more "
        "seeds lies with 95 % confidence.",
        *(f"{curve.name}: {_curve_words(curve)}" for curve in advice.evidence.curves),
    )
    return [
        Section("What was found", advice.findings, (rank_figure(advice),)),
        Section("Geometries, best first", (*ranked, *notes(advice)), tables=(cost_table(advice),)),
        Section("The curves in numbers", numbers, tables=(curve_table(advice),)),
    ]


def rank_figure(advice: Advice) -> str:
    """Rank / length against head dimension as SVG: each start, its plateau, the advised rank."""
    return inline_svg(rank_axes(advice))


def rank_axes(advice: Advice) -> Any:
    """The same as a matplotlib figure."""
    panel = Panel(
        "Rank of a head before training",
        "head dimension",
        "rank / tokens",
        tuple(_drawn(curve) for curve in advice.evidence.curves),
        x_scale="log",
    )
    figure = draw([panel])
    _mark(figure.axes[0], advice)
    return figure


def _mark(axes: Axes, advice: Advice) -> None:
    """The plateau of each curve, the advised rank, and powers of two under the axis."""
    for curve, colour in zip(advice.evidence.curves, COLOURS, strict=False):
        axes.axhline(curve.plateau, color=colour, linewidth=0.8, linestyle="--", zorder=1)
    paper = any(curve.start == "paper" for curve in advice.evidence.curves)
    label = "plateau (N(0, 1): of its hardmax)" if paper else "plateau"
    axes.plot([], [], color="0.3", linewidth=0.8, linestyle="--", label=label)
    rank = advice.rank.rank
    axes.axvline(rank, color="0.35", linestyle=":", linewidth=1.2, zorder=0)
    place = ("data", "axes fraction")
    axes.annotate(f" advised {rank}", (rank, 0.02), xycoords=place, fontsize=9, color="0.25")
    dims = advice.curve.head_dims
    doublings = [dim for dim in dims if dim & (dim - 1) == 0]
    axes.set_xticks(doublings, [str(dim) for dim in doublings])
    axes.minorticks_off()
    axes.set_ylim(0, 1.05)
    axes.legend()


def _drawn(curve: RankCurve) -> Curve:
    points = Line(curve.head_dims, curve.mean)
    masked = "" if curve.mask == "none" else f", {curve.mask}"
    return Curve(f"{_LABELS[curve.start]}{masked}", points, spread=curve.half_width)


_LABELS = {"model": "model's own start", "paper": "N(0, 1) weights", "law": "finite law"}


def _curve_words(curve: RankCurve) -> str:
    seeds = f"{curve.seeds} seeds" if curve.seeds else "as headwise law gives it"
    return (
        f"{START_WORDS[curve.start]}; {seeds}; plateau {curve.plateau:.3f} ({curve.plateau_from})."
    )


def _costs(advice: Advice, choice: Choice) -> str:
    usual, largest = choice.against_usual, choice.against_largest
    beside = "the present model" if advice.usual == "present" else advice.usual
    return (
        f"Against {beside}: {usual['parameters']:.0%} of the parameters, "
        f"{usual['flops_per_token']:.0%} of the FLOPs, "
        f"{usual['cache_bytes_per_token']:.0%} of the cache. Against the largest: "
        f"{largest['parameters']:.0%}, {largest['flops_per_token']:.0%} and "
        f"{largest['cache_bytes_per_token']:.0%}."
    )
