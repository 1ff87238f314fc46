"""The answer as an HTML page that needs no other file, and as a part of a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import Any

from headwise.advice.answer import Answer
from headwise.advice.export import exported, remarks
from headwise.advice.render.document import document
from headwise.advice.render.figure import figure
from headwise.advice.words.answer import over_words
from headwise.faces import Face
from headwise.geometry import LatentGeometry
from headwise.report import inline_svg

#: What stands between backticks, an option of the command with its value, or the named command.
CODE = re.compile(
    r"`([^`]+)`|((?:^|(?<=[ (]))--[a-z][-a-z]*(?: (?:causal|retrieval|\d+))?|headwise trial)"
)

#: Geometries that the suggested trial compares.
COMPARED = 3


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
    environment.filters["coded"] = _coded
    return environment.get_template(template).render(
        shown=shown,
        marked=[number for number, row in enumerate(shown.rows) if row.advised],
        svg=Markup(inline_svg(figure(answer))),
        layer=exported(answer, "torch"),
        remarks=remarks(answer, "torch"),
        trial=trial_command(answer),
    )


def trial_command(answer: Answer) -> str:
    """The command that trains the advised geometry beside the usual one and the next choice."""
    offered = (answer.best, answer.usual, *answer.choices)
    geometries = dict.fromkeys(c.geometry for c in offered if over_words(answer, c) is None)
    plain = [g for g in geometries if g.kv_heads == g.heads and not isinstance(g, LatentGeometry)]
    named = [f"{g.heads}x{g.qk_rank}" + f"/{g.v_rank}" * (g.v_rank != g.qk_rank) for g in plain]
    command = f"headwise trial {_trained_on(answer)} --width {answer.evidence.width}"
    return f"{command} --candidates {','.join(named[:COMPARED])}" if len(named) > 1 else command


def _trained_on(answer: Answer) -> str:
    """The data as a trial takes them; vectors need labels."""
    source, known = answer.evidence.source, answer.evidence.statistics
    named = "SOURCE" if source in (None, "tokens") else quote(source)
    if known is not None and not known.learned and not answer.evidence.images:
        return f"{named} --labels LABELS"
    # Both commands choose a patch where none is given, and not always the same one.
    return f"{named} --patch {answer.evidence.patch}" if answer.evidence.images else named


def _coded(sentence: str) -> Any:
    """Mark parameters, options and commands as code."""
    from markupsafe import Markup, escape

    parts, end = [], 0
    for found in CODE.finditer(sentence):
        parts += [escape(sentence[end : found.start()]), Markup("<code>")]
        parts += [escape(found[1] or found[2]), Markup("</code>")]
        end = found.end()
    return Markup("").join([*parts, escape(sentence[end:])])
