"""Rows in, document out: figures, tables and pages."""

from headwise.report.figures import Curve, Line, Panel, draw, inline_svg, save_figure
from headwise.report.page import Section, page, write_page
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
    "save_figure",
    "write_page",
]
