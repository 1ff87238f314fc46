"""The curve of ``headwise law`` as a file, for people who put it into a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headwise.errors import BadInputError

if TYPE_CHECKING:
    from headwise.cli.law_curve import Curve

FORMATS = (".png", ".svg", ".pdf")


def refuse_unwritable(file: Path) -> None:
    """Refuse a name or a folder that cannot hold the figure, before anything is computed.

    >>> refuse_unwritable(Path("law.bmp"))
    Traceback (most recent call last):
    headwise.errors.BadInputError: law.bmp is not a figure file; end its name in .png, .svg or .pdf
    """
    if file.suffix.lower() not in FORMATS:
        raise BadInputError(
            f"{file.name} is not a figure file", hint="end its name in .png, .svg or .pdf"
        )
    if not file.parent.is_dir():
        raise BadInputError(
            f"cannot write {file}: there is no folder {file.parent}",
            hint="choose a folder that exists",
        )
    if file.is_dir():
        raise BadInputError(f"cannot write {file}: it is a folder", hint="choose another name")


def draw(curve: Curve, file: Path) -> None:
    """Rank over length against head dimension, the barrier and the critical dimension marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    dims = [dim for dim, _, _ in curve.rows]
    axes.plot(dims, [ratio for _, ratio, _ in curve.rows], "o-", color="black", label="random head")
    axes.axhline(curve.barrier, color="0.5", linestyle="--", label="barrier")
    label = f"{curve.fraction:.0%} of the barrier: d_h = {curve.critical}"
    axes.axvline(curve.critical, color="0.5", linestyle=":", label=label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, None)
    axes.set_xlabel("head dimension")
    axes.set_ylabel("expected hardmax rank / length")
    under = "" if curve.mask == "none" else f", {curve.mask} mask"
    axes.set_title(f"{curve.length} tokens, Gaussian queries and keys{under}")
    figure.legend(frameon=False, loc="outside lower center", ncols=3, fontsize=9)
    try:
        figure.savefig(file, dpi=150)
    except OSError as error:
        raise BadInputError(
            f"cannot write {file}: {error.strerror}", hint="choose a folder you may write to"
        ) from error
