"""The answer as an HTML page that needs no other file, and as a part of a notebook."""

from __future__ import annotations

from pathlib import Path

from headwise.advice.answer import Answer
from headwise.advice.export import layer_call
from headwise.advice.render.document import document
from headwise.advice.render.figure import figure
from headwise.faces import Face
from headwise.report import inline_svg

NEXT = """# In Python
{call}

# Compare it with other geometries by training
headwise trial --help"""


def page(answer: Answer, face: Face = "python") -> str:
    """The whole page: verdict, table, what to type next, curves, findings, costs."""
    return _rendered(answer, "page.html.jinja", face)


def notebook(answer: Answer) -> str:
    """Verdict, curves, table and reasons."""
    return _rendered(answer, "notebook.html.jinja", "python")


def _rendered(answer: Answer, template: str, face: Face) -> str:
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    shown = document(answer, face)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return environment.get_template(template).render(
        shown=shown,
        marked=[number for number, row in enumerate(shown.rows) if row.advised],
        svg=Markup(inline_svg(figure(answer))),
        code=NEXT.format(call=layer_call(answer.best.geometry)),
    )
