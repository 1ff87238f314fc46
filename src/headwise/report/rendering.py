"""Figures as files: laid out once, then written as PNG, SVG and PDF.

Drawing is slow work of one processor, so many figures can be drawn by several processes.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from headwise.errors import ExecutorError
from headwise.report.figures import Panel, draw, in_style
from headwise.whole_files import write_whole

#: What files are written of each figure.
FORMATS = (".png", ".svg", ".pdf")

#: Fewer figures than this are drawn sooner here than a process has loaded what draws them.
WORTH_PROCESSES = 6

#: A figure in each of its formats.
Rendered = Mapping[str, bytes]


def render(figure: Any, formats: Sequence[str] = FORMATS) -> Rendered:
    """The files of a figure; its parts stand at the same places in all of them.

    >>> from headwise.report import Curve, Line
    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> render(draw([panel]), [".pdf"])[".pdf"][:4]
    b'%PDF'
    """
    with in_style():
        box = _laid_out(figure)
        return {ending: _bytes(figure, ending[1:], box) for ending in formats}


def render_all(wanted: Sequence[Sequence[Panel]], processes: int = 1) -> Iterator[Rendered]:
    """A figure for each list of panels, in their order, drawn by up to so many processes.

    Processes import the script that asks: one that asks for more than one must do so under
    ``if __name__ == "__main__"``.

    >>> from headwise.report import Curve, Line
    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> [sorted(files) for files in render_all([[panel]])]
    [['.pdf', '.png', '.svg']]
    """
    if processes < 2 or len(wanted) < WORTH_PROCESSES:
        yield from map(_drawn, wanted)
        return
    ways = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
    try:
        with ProcessPoolExecutor(processes, context, initializer=_leave_interrupts) as pool:
            yield from pool.map(_drawn, wanted)
    except BrokenProcessPool:
        raise ExecutorError(
            "a process that draws figures died", hint="draw them with one process (workers)"
        ) from None


def save_figure(figure: Any, stem: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PNG, SVG and PDF beside each other.

    >>> import tempfile
    >>> from headwise.report import Curve, Line
    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> [path.name for path in save_figure(draw([panel]), Path(tempfile.mkdtemp()) / "line")]
    ['line.png', 'line.svg', 'line.pdf']
    """
    return save_rendered(render(figure), stem)


def save_rendered(files: Rendered, stem: str | os.PathLike[str]) -> list[Path]:
    """Write the files of a figure beside each other.

    >>> import tempfile
    >>> [path.name for path in save_rendered({".svg": b""}, Path(tempfile.mkdtemp()) / "line")]
    ['line.svg']
    """
    stem = Path(stem)
    return [
        write_whole(
            stem.with_name(stem.name + ending), content, hint="choose another folder to write to"
        )
        for ending, content in files.items()
    ]


def inline_svg(figure: Any) -> str:
    """A figure as an <svg> element, to be put into a page.

    >>> from headwise.report import Curve, Line
    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> inline_svg(draw([panel])).startswith("<svg")
    True
    """
    return svg_element(render(figure, [".svg"]))


def svg_element(files: Rendered) -> str:
    """The <svg> element of a figure that has been rendered.

    >>> svg_element({".svg": b"<?xml?><svg></svg>"})
    '<svg></svg>'
    """
    text = files[".svg"].decode()
    return text[text.index("<svg") :]


def _drawn(panels: Sequence[Panel]) -> Rendered:
    return render(draw(panels))


def _laid_out(figure: Any) -> Any:
    """Settle where everything stands, and return the box in inches that holds all of it.

    Left to itself matplotlib does both again for each format. Here text is measured as SVG
    writes it, without regard to pixels.
    """
    from matplotlib import rcParams
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas, dpi = figure.canvas, figure.dpi
    FigureCanvasSVG(figure)
    figure.draw_without_rendering()
    box = figure.get_tightbbox().padded(rcParams["savefig.pad_inches"])
    figure.set_layout_engine("none")
    figure.set_canvas(canvas)
    figure.dpi = dpi
    return box


def _bytes(figure: Any, kind: str, box: Any) -> bytes:
    # A date would make every file differ from the last.
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    out = io.BytesIO()
    figure.savefig(out, format=kind, metadata=dates.get(kind, {}), bbox_inches=box)
    return out.getvalue()


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
