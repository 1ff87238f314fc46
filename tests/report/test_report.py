"""Figures, tables and pages."""

import io
import os
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from headwise.errors import BadInputError, ExecutorError, ParameterError
from headwise.report import (
    Curve,
    Line,
    Panel,
    Section,
    Table,
    draw,
    inline_svg,
    page,
    render,
    render_all,
    rendering,
    save,
    save_rendered,
    svg_element,
    terminal_plot,
    write_page,
)
from headwise.report.figures import COLOURS, MARKERS, in_style
from headwise.report.rendering import WORTH_PROCESSES


def curve(label="64 tokens", shift=0.0):
    x = (2.0, 4.0, 8.0)
    y = tuple(value + shift for value in (0.1, 0.3, 0.5))
    return Curve(label, Line(x, y), (0.02, 0.02, 0.01), Line((4.0,), (0.31,)), Line(x, y))


PANEL = Panel("Rank levels off", "head dimension", "rank / tokens", (curve(), curve("128", 0.1)))


def test_a_panel_shows_everything_it_was_given():
    (axes,) = draw([PANEL]).axes
    assert axes.get_xlabel() == "head dimension"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "64 tokens",
        "128",
        "published",
        "law",
    ]
    hollow = [
        line
        for line in axes.lines
        if line.get_markerfacecolor() == "none" and len(line.get_xdata())
    ]
    assert [list(line.get_ydata()) for line in hollow] == [[0.31], [0.31]]
    (band, _) = axes.collections
    assert band.get_paths()[0].get_extents().ymin == pytest.approx(0.08)


def test_panels_that_name_the_same_curves_in_several_rows_share_one_legend():
    panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    more = replace(panel, curves=(*panel.curves, Curve("more", Line((1, 2), (5, 6)))))
    other = Panel("Another", "x", "y", (Curve("else", Line((1, 2), (3, 4))),))
    legends = [axes.get_legend() for axes in draw([panel, panel, more, other, other]).axes]
    assert [
        [text.get_text() for text in legend.get_texts()] if legend else None for legend in legends
    ] == [None, ["it", "more"], None, ["else"], None]


def test_ticks_whose_names_would_touch_have_none():
    panel = Panel("A line", "x", "y", (curve(),), "log", x_ticks=(1, 401, 1001, 16001))
    (axes,) = draw([panel]).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "401", "", "16001"]


def test_a_band_ends_at_the_largest_possible_value():
    curve = Curve("share", Line((1, 2), (0.5, 0.9)), spread=(0.1, 0.3))
    (axes,) = draw([Panel("A share", "x", "y", (curve,), ceiling=1.0)]).axes
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 1.0


def test_the_legend_is_next_to_the_axes():
    """No entry of the legend lies on a curve."""
    figure = draw([PANEL, Panel("Other", "x", "y", (curve("alone"),))])
    figure.canvas.draw()
    for axes in figure.axes:
        legend = axes.get_legend().get_window_extent()
        assert legend.x0 >= axes.get_window_extent().x1


def test_panels_that_name_the_same_curves_share_a_legend():
    first, second = draw([PANEL, PANEL]).axes
    assert first.get_legend() is None
    assert second.get_legend() is not None


def test_ticks_and_levels_are_those_given():
    panel = Panel(
        "Rank",
        "head dimension",
        "rank",
        (curve(),),
        "log",
        x_ticks=(2, 6, 96),
        levels=(("a", 0.6), ("", 0.59)),
    )
    (axes,) = draw([panel]).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "6", "96"]
    assert [text.get_text() for text in axes.texts] == ["a"]
    drawn = [list(line.get_ydata()) for line in axes.lines]
    assert [0.6, 0.6] in drawn and [0.59, 0.59] in drawn


def test_a_level_without_a_name_moves_no_other_name():
    def place(*levels):
        (axes,) = draw([Panel("Rank", "head dimension", "rank", (curve(),), levels=levels)]).axes
        (text,) = axes.texts
        return text.xy

    assert place(("a", 0.6), ("", 0.599)) == place(("a", 0.6))


def heights(*y):
    """The limits and names of the vertical axis of a curve on a logarithmic one."""
    line = Curve("alone", Line((1.0, 2.0), y))
    (axes,) = draw([Panel("Loss", "rank", "loss", (line,), y_scale="log")]).axes
    axes.figure.canvas.draw()
    return axes.get_ylim(), [tick.get_text() for tick in axes.get_yticklabels()]


def test_a_short_logarithmic_axis_has_plain_numbers():
    assert heights(0.25, 0.9)[1] == ["0.3", "0.4", "0.6", "0.8"]
    assert heights(0.04, 0.6)[1] == ["0.05", "0.1", "0.2", "0.5"]


def test_a_long_logarithmic_axis_has_powers_of_ten():
    assert any("10^{-3}" in name for name in heights(1e-4, 0.9)[1])


def test_a_level_beyond_the_curves_is_inside_the_axes():
    line = Curve("alone", Line((1.0, 2.0), (0.25, 0.5)))
    shown = Panel("Loss", "rank", "loss", (line,), y_scale="log", levels=(("trivial", 0.89),))
    (axes,) = draw([shown]).axes
    assert axes.get_ylim()[1] > 0.89


def test_nearly_equal_values_look_nearly_equal():
    (low, high), names = heights(39.8, 40.1)
    assert high / low == pytest.approx(4.0)
    assert "40" in names


def test_curves_differ_without_colour():
    def darkness(colour):
        red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert len(set(MARKERS)) == len(COLOURS)
    greys = [darkness(colour) for colour in COLOURS]
    assert greys == sorted(greys)
    assert min(b - a for a, b in pairwise(greys)) > 5


def test_the_same_data_give_the_same_files(tmp_path):
    one = save_rendered(render(draw([PANEL, PANEL])), tmp_path / "a" / "figure")
    two = save_rendered(render(draw([PANEL, PANEL])), tmp_path / "b" / "figure")
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes()
    assert [path.read_bytes()[:4] for path in one] == [b"\x89PNG", b"<?xm", b"%PDF"]


def test_parts_stand_where_matplotlib_would_put_them():
    """Laid out once and saved with its box, a figure is what matplotlib saves by itself."""
    out = io.BytesIO()
    with in_style():
        draw([PANEL, PANEL]).savefig(
            out, format="svg", metadata={"Date": None}, bbox_inches="tight"
        )
    assert render(draw([PANEL, PANEL]))[".svg"] == out.getvalue()


def test_a_figure_can_be_rendered_again():
    figure = draw([PANEL])
    first = render(figure)
    assert render(figure) == first
    assert inline_svg(figure) == svg_element(first)
    assert figure.dpi == 160


def test_processes_draw_the_same_files_in_the_same_order():
    wanted = [[replace(PANEL, title=f"Panel {number}")] for number in range(WORTH_PROCESSES)]
    assert list(render_all(wanted, processes=2)) == list(render_all(wanted))


def test_a_process_that_dies_while_drawing_is_said(monkeypatch):
    monkeypatch.setattr(rendering, "_leave_interrupts", partial(os._exit, 1))
    with pytest.raises(ExecutorError, match=r"draws figures died; .* one process"):
        list(render_all([()] * WORTH_PROCESSES, processes=2))


def test_the_style_of_other_figures_is_unchanged():
    import matplotlib

    before = dict(matplotlib.rcParams)
    save = inline_svg(draw([PANEL]))
    assert save.rstrip().endswith("</svg>")
    assert dict(matplotlib.rcParams) == before


def test_lines_and_rows_must_fit():
    with pytest.raises(BadInputError, match="expected 3 values, got 1"):
        Line((1, 2, 3), (1,))
    with pytest.raises(BadInputError, match="expected 2 half widths for a curve, got 1"):
        Curve("x", Line((1, 2), (1, 2)), (0.1,))
    with pytest.raises(BadInputError, match="expected 2 cells in row 2, got 1"):
        Table(("a", "b"), ((1, 2), (1,)))


def test_tables():
    table = Table(("cell", "value"), (("n=100 | x", 0.59123), ("<b>", 7)), frozenset({(1, 1)}))
    assert table.text() == "cell        value\nn=100 | x  0.5912\n<b>            7*"
    assert table.markdown().splitlines()[2:] == ["| n=100 ∣ x | 0.5912 |", "| <b> | **7** |"]
    assert '<td>&lt;b&gt;</td><td class="number stressed">7</td>' in table.html()


class Checker(HTMLParser):
    """Every element closed, every name once, every link to a name that exists."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.links, self.sources = [], [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names += [given["id"]] if "id" in given else []
        self.links += [v for k, v in attributes if k in ("href", "xlink:href")]
        self.sources += [v for k, v in attributes if k == "src"]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert tag in ("meta",) or self.open.pop() == tag


def test_a_page_is_whole_and_needs_no_other_file(tmp_path):
    figure = inline_svg(draw([PANEL]))
    sections = [
        Section("One <1>", ("Words & more.",), (figure, figure), (Table(("a",), ((1,),)),)),
        Section("Two", (), (figure,)),
    ]
    text = write_page(page("Report", "All of it.", sections, "made by a test"), tmp_path / "r.html")
    checker = Checker()
    checker.feed(text.read_text())
    assert checker.open == []
    assert len(checker.names) == len(set(checker.names)) > 20
    assert {link[1:] for link in checker.links} <= set(checker.names)
    assert checker.sources == []
    loaded = re.findall(r"(?:url\(|@import|<script|<link)[^)>]*", text.read_text())
    assert all(found.startswith("url(#") for found in loaded)


def test_a_page_has_dark_colours_and_breaks_long_names():
    """Every colour of the page is a variable, so that both schemes set it."""
    style = page("Report", "", []).partition("<style>")[2].partition("</style>")[0]
    light, _, rest = style.partition("@media (prefers-color-scheme: dark)")
    assert set(re.findall(r"(--[a-z]+):", light)) == set(re.findall(r"(--[a-z]+):", rest))
    assert re.findall(r"#[0-9a-f]{3,6}", rest.partition("body {")[2]) == []
    assert "overflow-wrap: anywhere" in rest


def test_only_a_name_of_an_html_file_is_written_to(tmp_path):
    for name in ("r.html", "r.HTM", "r"):
        assert write_page("x", str(tmp_path / name)).read_text() == "x"
    with pytest.raises(ParameterError, match=r"an HTML file for `path`, got .*; pass .*x\.html"):
        write_page("x", tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match=r"cannot be written .*; choose another folder"):
        write_page("x", tmp_path / "file" / "r.html")
    with pytest.raises(BadInputError, match=r"cannot be written .*; choose another folder"):
        save_rendered(render(draw([PANEL])), tmp_path / "file" / "r")


def test_a_saved_figure_is_the_rendered_one(tmp_path):
    file = tmp_path / "figure.pdf"
    figure = draw([PANEL])
    assert save(figure, file) is save(figure, None) is figure
    assert file.read_bytes() == render(draw([PANEL]))[".pdf"]


@pytest.mark.parametrize("name", ["figure.gif", "figure"])
def test_a_figure_of_another_kind_is_refused(tmp_path, name):
    with pytest.raises(BadInputError, match=r"\.png, \.svg or \.pdf, got 'figure"):
        save(draw([PANEL]), tmp_path / name)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 7])
def test_panels_in_rows_leave_no_empty_axes(count):
    panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    assert len(draw([panel] * count).axes) == count


def test_panels_that_share_their_heights_have_one_range():
    def panel(label, height, *, shared=True):
        return Panel("a", "x", label, (Curve("it", Line((1, 2), (1, height))),), shared_y=shared)

    low, high, other, own = draw(
        [panel("y", 3), panel("y", 30), panel("z", 300), panel("y", 3000, shared=False)]
    ).axes
    assert low.get_ylim() == high.get_ylim()
    assert high.get_ylim()[1] < other.get_ylim()[1] < own.get_ylim()[1]


def test_a_panel_in_the_terminal_has_its_curves_levels_and_legend():
    curves = (
        Curve("rising", Line((1, 2, 4, 8), (1.0, 2.0, 3.0, 4.0))),
        Curve("rings", Line((1, 8), (4.0, 1.0)), style="rings"),
    )
    panel = Panel("Title", "x", "y", curves, x_scale="log", levels=(("level", 2.0),))
    title, *rows, label, legend = terminal_plot(panel, ("here", 4)).splitlines()
    assert (title.strip(), label.strip()) == ("Title: y", "x")
    assert legend.strip().split("   ") == ["● rising", "○ rings", "┄ level", "│ here"]
    assert rows[-1].split() == ["1", "2", "4", "8"]
    drawn = "\n".join(rows)
    assert (drawn.count("○"), drawn.count("●")) == (2, 4)
    assert "∙" in drawn and "┄┄┄┄" in drawn
    assert max(map(len, (title, *rows, label, legend))) <= 80


def test_a_long_legend_in_the_terminal_has_a_line_for_each_curve():
    names = [f"a rather long name of curve number {number}" for number in range(3)]
    curves = tuple(Curve(name, Line((1, 2), (1, 2))) for name in names)
    lines = terminal_plot(Panel("", "x", "", curves)).splitlines()
    assert [line.strip() for line in lines[-3:]] == [
        f"{mark} {name}" for mark, name in zip("●○◆", names, strict=True)
    ]


def test_a_name_that_is_no_text_is_written_all_the_same(tmp_path):
    """A file name may hold any bytes, which Python keeps as characters that UTF-8 has not."""
    written = write_page(page("tokens\udcff.npy", "", []), tmp_path / "report.html")
    assert "tokens?.npy" in written.read_text()


@pytest.mark.parametrize("name", ["$\\frac{$", "a$b", "$x$"])
def test_a_name_is_no_formula(name):
    curves = (Curve(name, Line((1, 2), (1, 2))), Curve("other", Line((1, 2), (2, 1))))
    figure = draw([Panel("", "x", "y", curves)])
    drawn = render(figure, [".svg"])[".svg"].decode()
    assert f"<!-- {name} -->" in drawn
