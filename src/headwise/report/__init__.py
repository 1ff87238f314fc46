"""Turn rows into documents: figures, tables and pages."""

from headwise.report.figures import Curve, Line, Panel, draw
from headwise.report.page import Section, page, write_page
from headwise.report.rendering import (
    inline_svg,
    render,
    render_all,
    save,
    save_rendered,
    svg_element,
)
from headwise.report.tables import Table, data_frame
from headwise.report.terminal import terminal_plot

__all__ = [
    "Curve",
    "Line",
    "Panel",
    "Section",
    "Table",
    "data_frame",
    "draw",
    "inline_svg",
    "page",
    "render",
    "render_all",
    "save",
    "save_rendered",
    "svg_element",
    "terminal_plot",
    "write_page",
]
