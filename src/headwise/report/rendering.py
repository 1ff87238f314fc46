"""Save figures as PNG, SVG and PDF, laid out once for all formats.

Drawing uses one processor, so many figures can be drawn by several processes.
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

from headwise.checks import of_type
from headwise.errors import BadInputError, ExecutorError
from headwise.report.figures import Panel, draw, in_style
from headwise.whole_files import possible_file, write_whole

#: The files written for each figure.
FORMATS = (".png", ".svg", ".pdf")

#: Fewer figures than this are drawn faster without starting processes.
WORTH_PROCESSES = 6

#: A figure in each of its formats.
Rendered = Mapping[str, bytes]


def render(figure: Any, formats: Sequence[str] = FORMATS) -> Rendered:
    """Render a figure; its layout is the same in all formats.

    Args:
        figure: A matplotlib figure.
        formats: The file extensions to render.

    Returns:
        The bytes of each file, by extension.

    Example:
        >>> from headwise.report import Curve, Line
        >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
        >>> render(draw([panel]), [".pdf"])[".pdf"][:4]
        b'%PDF'
    """
    with in_style():
        box = _laid_out(figure)
        return {ending: _bytes(figure, ending[1:], box) for ending in formats}


def render_all(wanted: Sequence[Sequence[Panel]], processes: int = 1) -> Iterator[Rendered]:
    """Draw and render a figure for each list of panels, in their order.

    Worker processes import your script. With more than one process, call this under
    ``if __name__ == "__main__"``.

    Args:
        wanted: The panels of each figure.
        processes: The most processes to use.

    Yields:
        The files of each figure, by extension.

    Raises:
        ExecutorError: If a process dies.

    Example:
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


def save(figure: Any, file: str | os.PathLike[str] | None) -> Any:
    """Save a figure, and return it.

    Args:
        figure: A matplotlib figure.
        file: A name ending in .png, .svg or .pdf; its folder is made. None saves nothing.

    Returns:
        The figure.

    Raises:
        BadInputError: If the file cannot be written or its name ends in something else.
        ParameterError: If ``file`` is no path.

    Example:
        >>> import tempfile
        >>> from headwise.report import Curve, Line
        >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
        >>> file = Path(tempfile.mkdtemp()) / "line.svg"
        >>> len(save(draw([panel]), file).axes), file.exists()
        (1, True)
    """
    if file is None:
        return figure
    path = possible_file(Path(of_type("`file`", file, (str, os.PathLike), "a path")))
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise BadInputError(
            f"expected a figure's name to end in .png, .svg or .pdf, got {path.name!r}",
            hint="choose one of these endings",
        )
    write_whole(path, render(figure, [ending])[ending], hint="choose another folder to write to")
    return figure


def save_rendered(files: Rendered, stem: str | os.PathLike[str]) -> list[Path]:
    """Write the files of a rendered figure.

    Args:
        files: The bytes of each file, by extension.
        stem: The path without extension.

    Returns:
        The paths of the files.

    Example:
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
    """Render a figure as an <svg> element for a page.

    Args:
        figure: A matplotlib figure.

    Returns:
        The element as a string that starts with ``<svg``.

    Example:
        >>> from headwise.report import Curve, Line
        >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
        >>> inline_svg(draw([panel])).startswith("<svg")
        True
    """
    return svg_element(render(figure, [".svg"]))


def svg_element(files: Rendered) -> str:
    """Return the <svg> element of a rendered figure.

    Args:
        files: The bytes of each file, by extension.

    Returns:
        The element as a string, without the XML header.

    Example:
        >>> svg_element({".svg": b"<?xml?><svg></svg>"})
        '<svg></svg>'
    """
    text = files[".svg"].decode()
    return text[text.index("<svg") :]


def _drawn(panels: Sequence[Panel]) -> Rendered:
    return render(draw(panels))


def _laid_out(figure: Any) -> Any:
    """Return the box in inches that holds everything, and fix the layout.

    matplotlib would do both again for each format. Text is measured as SVG writes it, without
    rounding to pixels.
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
    # A date would make every file different.
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    out = io.BytesIO()
    figure.savefig(out, format=kind, metadata=dates.get(kind, {}), bbox_inches=box)
    return out.getvalue()


def _leave_interrupts() -> None:
    """Ignore Ctrl-C: the parent process reacts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
