"""The rank curves as a figure, for pages and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.advice.answer import Answer
from headwise.advice.curves import RankCurve
from headwise.advice.words.answer import START
from headwise.report import Curve, Line, Panel, draw
from headwise.report.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The dashed line of a curve. With N(0, 1) weights it is the limit of hardmax, below softmax.
DASHED = {"paper": "limit of hardmax, N(0, 1) weights"}


def figure(answer: Answer) -> Any:
    """Rank / tokens against head dimension: each curve, its plateau, the advised rank."""
    drawn = draw([panel(answer)])
    _mark(drawn.axes[0], answer)
    return drawn


def panel(answer: Answer) -> Panel:
    """The rank curves."""
    return Panel(
        "Attention rank before training",
        "head dimension",
        "rank / tokens",
        tuple(
            Curve(label(curve), Line(curve.head_dims, curve.mean), spread=curve.half_width)
            for curve in answer.evidence.curves
        ),
        x_scale="log",
    )


def label(curve: RankCurve) -> str:
    """The name of a curve in a legend."""
    masked = "" if curve.mask == "none" else f", {curve.mask}"
    return f"{START[curve.start]}{masked}"


def _mark(axes: Axes, answer: Answer) -> None:
    """Plateaus, the advised rank, powers of two, and a legend that covers none of them."""
    curves = answer.evidence.curves
    for curve, colour in zip(curves, COLOURS, strict=False):
        name = DASHED.get(curve.start, "plateau")
        style = {"color": colour, "linewidth": 0.8, "linestyle": "--", "label": name}
        axes.axhline(curve.plateau, **style, zorder=1)
    rank = answer.best.rank
    axes.axvline(rank, color="0.35", linestyle=":", linewidth=1.2, zorder=0)
    place = ("data", "axes fraction")
    axes.annotate(f" advised {rank}", (rank, 0.02), xycoords=place, fontsize=9, color="0.25")
    dims = sorted({dim for curve in curves for dim in curve.head_dims if dim & (dim - 1) == 0})
    axes.set_xticks(dims, [str(dim) for dim in dims])
    axes.minorticks_off()
    axes.set_ylim(0, 1.05)
    # Below the axes: inside, the legend would hide the label of the advised rank.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
