"""Results: a short repr, a frame of their rows, a figure of their curves."""

from dataclasses import dataclass, field

import pytest
import torch

from headwise.report import draw
from headwise.report.results import Drawable, Tabular, short_repr


@dataclass
class Found:
    values: object
    note: str | None = None
    hidden: str = field(default="x", repr=False)

    __repr__ = short_repr


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (torch.zeros(2, 300), "<float32 of shape (2, 300)>"),
        (0.1 + 0.2, "0.3"),
        ((0.5,), "(0.5,)"),
        ((0.5,) * 50, "<50 of float>"),
        ({"a": 1}, "{'a': 1}"),
        ({str(n): n for n in range(50)}, "<50 of int>"),
        (["a" * 50, 2, "b" * 50], "<3 items>"),
        (Found(1), "Found(values=1)"),
        (Found("a" * 200), "<Found>"),
        ("a" * 200, f"'{'a' * 71}…'"),
        (torch.nn.Linear(2, 2), "<Linear>"),
    ],
)
def test_values_are_shown_in_few_characters(value, shown):
    assert repr(Found(value)) == f"Found(values={shown})"


def test_fields_that_do_not_fit_are_left_out():
    names = [f"a_rather_long_name_{n}" for n in range(40)]
    wide = dataclass(type("Wide", (), {"__annotations__": dict.fromkeys(names, int)}))
    wide.__repr__ = short_repr
    text = repr(wide(*range(40)))
    assert len(text) < 300 and text.startswith("Wide(a_rather_long_name_0=0, ")
    assert text.endswith(", …)")


class Nothing(Tabular, Drawable):
    def _rows(self):
        return []

    def _columns(self):
        return ["step", "rank"]

    def _figure(self):
        return draw([])


def test_a_result_without_rows_keeps_its_columns():
    assert list(Nothing().to_frame().columns) == ["step", "rank"]


def test_a_figure_is_saved_where_asked(tmp_path):
    class Line(Nothing):
        def _figure(self):
            from matplotlib.figure import Figure

            return Figure()

    Line().plot(tmp_path / "line.png")
    assert (tmp_path / "line.png").stat().st_size > 100
    assert type(Line().plot()).__name__ == "Figure"
