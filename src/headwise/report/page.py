"""Make a page: text, figures and tables in one HTML file that needs no other file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.checks import of_type
from headwise.endings import PAGES
from headwise.errors import ParameterError
from headwise.report.tables import Table, template
from headwise.whole_files import write_whole


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, then figures, then tables.

    Args:
        title: The heading.
        words: The paragraphs.
        figures: SVG elements.
        tables: The tables.

    Example:
        >>> Section("Table 1", ("Every cell agrees.",)).title
        'Table 1'
    """

    title: str
    words: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    foot: str = "",
    *,
    summary: Table | None = None,
) -> str:
    """Return the whole document; it loads nothing from another host.

    Args:
        title: The heading.
        lead: The first paragraph.
        sections: The sections, listed in the table of contents.
        foot: The last lines, in small print.
        summary: A table at the top.

    Returns:
        An HTML document as one string.

    Example:
        >>> text = page("Report", "What was found.", [Section("Table 1", ("All < 1.",))])
        >>> "All &lt; 1." in text, "http" in text
        (True, False)
    """
    shown = [_placed(number, section) for number, section in enumerate(sections, 1)]
    return template("page.html").render(
        title=title, lead=lead, sections=shown, foot=foot, summary=summary
    )


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page; the file appears whole or not at all.

    Args:
        text: The document.
        path: The file to write.

    Returns:
        The path of the file that was written.

    Raises:
        ParameterError: If that is no path, or its name has the ending of another kind of file.
        BadInputError: If it cannot be written there.

    Example:
        >>> import tempfile
        >>> write_page(page("Report", "", []), Path(tempfile.mkdtemp()) / "report.html").name
        'report.html'
    """
    file = Path(of_type("`path`", path, (str, os.PathLike), "the name of an HTML file"))
    if file.suffix.lower() not in PAGES:
        raise ParameterError(
            f"expected an HTML file for `path`, got {file}",
            hint=f"pass {file.with_suffix('.html')}",
        )
    # Names of files may hold bytes that are no text.
    content = text.encode(errors="replace")
    return write_whole(file, content, hint="choose another folder to write to")


def _placed(number: int, section: Section) -> dict[str, Any]:
    from markupsafe import Markup

    anchor = f"section-{number}"
    figures = [
        Markup(_apart(svg, f"{anchor}-{place}")) for place, svg in enumerate(section.figures)
    ]
    return {**vars(section), "anchor": anchor, "figures": figures}


def _apart(svg: str, name: str) -> str:
    """Prefix the names inside an SVG: equal names in two figures would clash."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
