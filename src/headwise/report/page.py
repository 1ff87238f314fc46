"""A page: sections of words, figures and tables in one HTML file that needs no other."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from headwise.report.tables import Table
from headwise.whole_files import write_whole

_CSS = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.6rem; }
nav ul { columns: 2; padding-left: 1.1rem; }
/* Figures of many panels may be wider than the text, where the window is. */
figure { margin: 1rem calc(50% - min(50vw - 1rem, 44rem)); text-align: center; }
figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .5rem; text-align: left; border-bottom: 1px solid #e3e3e3; }
th { border-bottom: 2px solid #1a1a1a; }
td:first-child { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.stressed { background: #fbe3d6; font-weight: 600; }
footer { margin-top: 3rem; color: #555; font-size: .88rem; }
"""


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, then figures (SVG), then tables.

    >>> Section("Table 1", ("Every cell agrees.",)).title
    'Table 1'
    """

    title: str
    words: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def page(title: str, lead: str, sections: Sequence[Section], foot: str = "") -> str:
    """The whole document; it asks no other host for anything.

    >>> text = page("Report", "What was found.", [Section("Table 1", ("All < 1.",))])
    >>> "All &lt; 1." in text, "http" in text
    (True, False)
    """
    contents = "".join(
        f'<li><a href="#{_anchor(number)}">{escape(section.title)}</a></li>'
        for number, section in enumerate(sections)
    )
    body = "\n".join(_section(number, section) for number, section in enumerate(sections))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n"
        f"<body><h1>{escape(title)}</h1><p>{escape(lead)}</p>"
        f"<nav><ul>{contents}</ul></nav>\n{body}\n<footer>{escape(foot)}</footer></body></html>\n"
    )


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page; the file appears whole or not at all.

    >>> import tempfile
    >>> write_page(page("Report", "", []), Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """
    return write_whole(Path(path), text.encode(), hint="choose another --out")


def _anchor(number: int) -> str:
    return f"section-{number + 1}"


def _section(number: int, section: Section) -> str:
    words = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.words)
    figures = "".join(
        f"<figure>{_apart(svg, f'{_anchor(number)}-{place}')}</figure>"
        for place, svg in enumerate(section.figures)
    )
    tables = "".join(f'<div class="wide">{table.html()}</div>' for table in section.tables)
    heading = f'<h2 id="{_anchor(number)}">{escape(section.title)}</h2>'
    return f"<section>{heading}{words}{figures}{tables}</section>"


def _apart(svg: str, name: str) -> str:
    """The names inside an SVG made its own: in one page, equal names of two would clash."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
