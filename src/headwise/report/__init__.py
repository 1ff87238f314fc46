"""Turn rows into documents: figures, tables and pages."""

from headwise.report.figures import Curve, Line, Panel, draw
from headwise.report.page import Section, page, write_page
from headwise.report.rendering import (
    inline_svg,
    render,
    render_all,
    save_figure,
    save_rendered,
    svg_element,
)
from headwise.report.tables import Table

__all__ = [
    "Curve",
    "Line",
    "Panel",
    "Section",
    "Table",
    "draw",
    "inline_svg",
    "page",
    "render",
    "render_all",
    "save_figure",
    "save_rendered",
    "svg_element",
    "write_page",
]
