"""headwise law: its JSON, its table and plot, its figure, and its refusals."""

from __future__ import annotations

import json
import re

import pytest

from headwise.cli.app import main
from headwise.cli.console import print_in_any_encoding
from headwise.cli.law_report import picture
from headwise.theory import law
from headwise.theory.expected import UPPER_BOUND, ready_ratio
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law_formula import barrier_ratio, critical_head_dim


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["law", *arguments])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def test_json_has_the_promised_keys(capsys):
    code, out, _ = run(capsys, "--length", "1024", "--head-dim", "64", "--json")
    assert code == 0
    assert json.loads(out) == {
        "length": 1024,
        "head_dim": 64,
        "ratio": corrected_law(1024, 64),
        "error": ready_ratio(1024, 64).error,
        "method": "law",
        "critical_head_dim": critical_head_dim(1024, 0.9),
        "fraction": 0.9,
        "barrier": barrier_ratio(1024),
        "mask": "none",
    }


def test_a_causal_mask_has_a_law_of_its_own(capsys):
    arguments = ("--length", "1024", "--head-dim", "64", "--mask", "causal")
    code, out, _ = run(capsys, *arguments, "--json")
    answer, found = json.loads(out), ready_ratio(1024, 64, "causal")
    assert code == 0
    assert (answer["ratio"], answer["mask"]) == (found.ratio, "causal")
    assert answer["barrier"] == 1025 / 2048
    assert answer["critical_head_dim"] == critical_head_dim(1024, 0.9, "causal")
    assert "(law, causal mask)" in " ".join(run(capsys, *arguments)[1].split())


def test_the_table_names_the_mask(capsys):
    code, out, _ = run(capsys, "--length", "200", "--mask", "causal")
    assert code == 0
    assert "200 tokens, causal mask (barrier 0.5025)" in " ".join(out.split())


def test_an_unknown_mask_is_refused(capsys):
    code, _, err = run(capsys, "--length", "200", "--mask", "prefix")
    assert code == 2
    assert "prefix" in err


def test_fraction_moves_the_critical_dimension(capsys):
    arguments = ("--length", "128", "--head-dim", "1", "--fraction", "0.5", "--json")
    answer = json.loads(run(capsys, *arguments)[1])
    assert answer["critical_head_dim"] == 7  # the law says 6, where simulated heads reach 47 %
    assert answer["method"] == "exact"


def test_small_heads_are_simulated(capsys):
    answer = json.loads(run(capsys, "--length", "128", "--head-dim", "8", "--json")[1])
    assert answer["method"] == "simulation"
    assert answer["ratio"] == pytest.approx(0.357, abs=0.008)
    assert 0 < answer["error"] <= 0.0061  # three standard errors of 0.002


def test_one_size_in_words(capsys):
    code, out, _ = run(capsys, "--length", "1e12", "--head-dim", "64")
    assert code == 0
    assert "of 1,000,000,000,000 columns" in " ".join(out.split())
    assert "needs head dimension 3,235" in " ".join(out.split())


def test_without_head_dim_a_table_and_a_plot(capsys):
    code, out, _ = run(capsys, "--length", "200")
    assert code == 0
    assert "head dimension" in out
    assert "reaches 90%" in out
    assert f"│ critical head dimension {critical_head_dim(200, 0.9)}" in out
    assert "┄ barrier" in out


def test_methods_are_explained_and_the_help_has_examples(capsys):
    out = " ".join(run(capsys, "--length", "200")[1].split())
    assert "exact: a formula; simulation: mean of drawn heads; law: an approximation." in out
    assert "upper bound: the law" in " ".join(run(capsys, "--length", "1e8")[1].split())
    out = run(capsys, "--help")[1]
    assert "headwise law --length 1024" in out
    assert "Share of the barrier that counts as enough." in " ".join(out.split())


def test_table_as_json_lists_every_row(capsys):
    answer = json.loads(run(capsys, "--length", "1e8", "--json")[1])
    assert len(answer["head_dim"]) == len(answer["ratio"]) == len(answer["method"])
    assert answer["critical_head_dim"] in answer["head_dim"]
    bounded = answer["head_dim"].index(8)
    assert answer["method"][bounded] == UPPER_BOUND
    assert answer["error"][bounded] is None
    wide = answer["head_dim"].index(64)
    assert answer["error"][wide] == ready_ratio(10**8, 64).error
    assert (answer["fraction"], answer["barrier"]) == (0.9, barrier_ratio(10**8))


def test_plot_rises_to_the_barrier():
    lines = [line for line in picture(law(500)).splitlines() if line.endswith("│")]
    heights = {}
    for row, line in enumerate(lines):
        for column, mark in enumerate(line):
            if mark == "●":
                heights[column] = row
    ordered = [heights[column] for column in sorted(heights)]
    assert ordered == sorted(ordered, reverse=True)
    assert ordered[0] == len(lines) - 1
    assert "┄" in lines[ordered[-1]]


def test_several_head_dimensions_stand_between_commas(capsys):
    """64,128 is a list, as --candidates 16x4,1x64 is, and no head of 64,128 dimensions."""
    arguments = ("--length", "1024", "--head-dim", "64,128")
    answer = json.loads(run(capsys, *arguments, "--json")[1])
    assert answer == law(1024, [64, 128]).as_json()
    out = " ".join(run(capsys, *arguments)[1].split())
    assert "64 0.5209" in out and "128 0.5715" in out
    assert "90% of it needs head dimension 123" in out


def test_a_comma_inside_a_number_is_refused_where_a_list_may_stand(headwise):
    refusal = headwise("law", "--length", "1024", "--head-dim", "1,024").one_line(2)
    assert "expected numbers between commas, got '1,024'; write 1024 without commas" in refusal
    refusal = headwise("trial", "digits", "--seeds", "0,100").one_line(2)
    assert "expected one whole number without commas, such as 3, got '0,100'" in refusal


@pytest.mark.parametrize(
    ("head_dim", "meaning"),
    [(1, "formula leaves out"), (8, "three standard errors"), (64, "largest distance")],
)
def test_what_stands_behind_the_error_is_said(capsys, head_dim, meaning):
    out = run(capsys, "--length", "128", "--head-dim", str(head_dim))[1]
    assert re.search(f"±: .*{meaning}", " ".join(out.split()))


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figure_is_written(capsys, tmp_path, suffix):
    file = tmp_path / f"law.{suffix}"
    code, _, err = run(capsys, "--length", "50", "--head-dim", "16", "--plot", str(file))
    assert code == 0
    assert file.stat().st_size > 1000
    assert "drawn:" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--length", "1e12", "--head-dim", "5"), "too many possible queries"),
        (("--length", "50", "--plot", "/dev/null/a.png"), "cannot write into the folder /dev/null"),
    ],
)
def test_what_cannot_be_done_is_one_line(headwise, arguments, words):
    assert words in headwise("law", *arguments).one_line(1)


@pytest.mark.parametrize("name", ["file/law.png", "folder.png"])
def test_a_figure_that_cannot_be_written_is_refused_before_the_answer(headwise, tmp_path, name):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").touch()
    refusal = headwise("law", "--length", "100", "--plot", tmp_path / name).one_line(1)
    assert "cannot write" in refusal


def test_the_legend_of_the_plot_names_the_marks_in_any_encoding():
    """Encoded in ASCII, every mark of the legend is one that the plot shows."""
    print_in_any_encoding()
    *lines, legend = picture(law(500)).encode("ascii", "headwise").decode().splitlines()
    inside = [line[5:-1] for line in lines if line.endswith("|")]
    assert len({len(line) for line in inside}) == 1
    for mark in ("*", "-", "|"):
        assert any(mark in line for line in inside), mark
        assert f"{mark} " in legend
    assert "critical" in legend.split("| ")[1]


def test_the_command_and_the_function_give_the_same_json(capsys):
    """One head dimension gives numbers; a list of them gives lists."""
    printed = json.loads(run(capsys, "--length", "1024", "--head-dim", "64", "--json")[1])
    assert printed == law(1024, 64).as_json()
    assert law(1024, [64]).as_json()["ratio"] == [printed["ratio"]]
    printed = json.loads(run(capsys, "--length", "1024", "--json")[1])
    assert printed == law(1024).as_json()
