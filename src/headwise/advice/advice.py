"""Advice: the answer, with every way to show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.advice.answer import Answer
from headwise.advice.export import Form, exported, remarks
from headwise.advice.render.document import as_json, document
from headwise.advice.render.figure import figure
from headwise.advice.render.page import notebook, page
from headwise.advice.render.terminal import markdown, show, text
from headwise.advice.words.terms import geometry_words
from headwise.faces import Face
from headwise.report import write_page
from headwise.report.results import Drawable, Tabular


@dataclass(frozen=True, repr=False)
class Advice(Answer, Tabular, Drawable):
    """Ranked geometries, the evidence they rest on, and what was found.

    ``print(advice)`` shows the answer at a glance; a notebook shows it with its curves.
    ``to_frame`` has a row for each geometry, the advised one first; ``plot`` draws the rank curves.

    Example:
        >>> from headwise import advise
        >>> advice = advise(length=512, width=768)
        >>> advice
        Advice(12 heads of rank 64, width=768, task='unknown', source=None)
        >>> advice.best.costs.parameters
        2359296
    """

    def as_json(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and words."""
        return as_json(self)

    def markdown(self) -> str:
        """The whole answer as Markdown."""
        return markdown(self)

    def export(self, form: Form = "torch") -> str:
        """Write the advised geometry as a layer call or as a Hugging Face config.

        Args:
            form: "torch", "qwen3", "mistral", "deepseek_v3", "bert", "vit" or "timm".

        Returns:
            Python code, or the text of a config.json.

        Raises:
            BadInputError: That form cannot express the geometry.
        """
        return exported(self, form)

    def remarks(self, form: Form = "torch") -> list[str]:
        """What to check in an export: assumed sizes, another mask, a rank below the need."""
        return remarks(self, form)

    def show(self, console: Any, *, explain: bool = False) -> None:
        """Print the answer on a rich console: at a glance, or with ``explain`` everything."""
        show(self, console, explain=explain)

    def report(self, path: Path | str, *, face: Face = "python") -> Path:
        """Write an HTML report that needs no other file.

        Args:
            path: Where to write it.
            face: Whether to name parameters as in Python or as options of the command.

        Returns:
            The path.
        """
        return write_page(page(self, face), path)

    def _figure(self) -> Any:
        return figure(self)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for row in document(self).rows:
            yield {
                "name": row.name,
                "advised": row.advised,
                "heads": row.choice.geometry.heads,
                "kv_heads": row.choice.geometry.kv_heads,
                "rank": row.choice.rank,
                "v_rank": row.choice.geometry.v_rank,
                **vars(row.choice.costs),
                "mixing": row.choice.plateau_share,
                "lookup_error": row.choice.floor,
                "enough_rank": row.choice.meets,
            }

    def __repr__(self) -> str:
        named = geometry_words(self.best.geometry)
        source = None if self.evidence.source is None else self.evidence.source[-80:]
        width, task = self.evidence.width, self.question.task
        return f"Advice({named}, width={width}, task={task!r}, source={source!r})"

    def __str__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return notebook(self)
