"""``headwise advise`` in a terminal: at a glance, explained, as JSON, exported."""

import json

import numpy as np
import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--length", "512", "--width", "768"),
        ("--length", "4096", "--width", "64", "--mask", "causal"),
        ("--config", "small.json"),
        ("--data", "ids.npy"),
        ("--length", "512", "--width", "768", "--params", "30k", "--need", "mixing", "--any-shape"),
    ],
)
def test_the_answer_fits_on_a_screen(headwise, files, monkeypatch, arguments):
    monkeypatch.chdir(files)
    lines = headwise("advise", *arguments).out.splitlines()
    assert len(lines) <= 35
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("→") for line in lines) == 1
    for word in ("habit", "binds", "own start", "plateau", "any_shape", "`", "retrieval="):
        assert word not in " ".join(lines)
    for column in ("rank", "mixing", "retrieval", "enough"):
        assert sum(line.startswith(f"{column}: ") for line in lines) == 1, column


def test_one_number_for_the_rank_that_is_enough(headwise):
    """The headline, the legend and the reasons name the same one: 93, not the 96 that was tried."""
    out = " ".join(headwise("advise", "--length", 512, "--width", 768).out.split())
    assert out.count("about rank 93") == 3
    assert "96 is enough" not in out and "needs 96" not in out


def test_columns_and_the_kept_geometry_are_explained(headwise):
    out = " ".join(headwise("advise", "--length", 512, "--width", 768).out.split())
    assert "in % of that at large head dimension." in out
    legend = "lower bound on the mean squared error of retrieving one token (0 = exact, 0.5 = "
    assert f"{legend}without attention)." in out
    assert "The usual geometry is below that; without measured tokens it is kept." in out
    assert "Without measured tokens headwise keeps the usual geometry" in out
    digits = " ".join(headwise("advise").out.split())
    assert f"{legend}without attention); –: no bound." in digits
    assert "is below that" not in digits
    assert "digits-patches and digits-pixels use this same data." in digits


def test_tasks_that_disagree_are_named(headwise):
    out = " ".join(headwise("advise", "digits", "--task", "unknown").out.split())
    assert "the task is unknown, and trained tasks on vectors disagree (less rank won on" in out
    assert "cifar10, digits-patches; lost on farthest-planted-4). Pass --task." in out


def test_the_papers_rule_is_explained(headwise):
    out = headwise("advise", "--length", 512, "--width", 768, "--explain").out
    assert "rule (stop when a doubling gains only about 0.01) gives 256" in " ".join(out.split())


def test_rows_over_a_limit_are_marked(headwise):
    lines = headwise("advise", "--length", 512, "--width", 768, "--params", "1M").out.splitlines()
    over = [line for line in lines if line.endswith("over limit")]
    assert [line.split()[0] for line in over] == ["usual", "largest"]
    assert not any(
        "over limit" in line
        for line in headwise("advise", "--length", 64, "--width", 32).out.splitlines()
    )


def test_the_answer_for_a_config_does_not_contradict_itself(headwise, tmp_path):
    """The model is kept although the rule asks for more: the headline and the table say so."""
    config = {"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12}
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = headwise("advise", "--config", tmp_path / "config.json").out
    words = " ".join(out.split())
    assert "Keep 12 heads of rank 64" in words
    assert "; the law for random heads suggests about rank" in words
    assert "but this is not evidence: pass your data to measure it." in words
    assert "over limit" not in words
    assert "over yours: it costs more than your model" in words
    assert "half predicted" in words


def test_advice_that_is_the_usual_geometry_claims_no_evidence(headwise, tmp_path):
    """Vectors of 64 independent numbers at width 64 need full rank, which is the usual one."""
    tokens = np.random.default_rng(0).normal(size=(40, 24, 64))
    np.save(tmp_path / "t.npy", tokens)
    out = " ".join(headwise("advise", tmp_path / "t.npy", "--task", "classify").out.split())
    assert "Use 1 head of rank 64" in out
    assert "The tokens suggest rank 64, which is the usual one." in out
    assert "above the usual geometry" not in out


def test_any_shape_is_offered_only_where_it_changes_the_rank(headwise):
    """Rank 48 is tried, 64 fills the width. As a multiple of 64 it is 64 in any shape."""
    size = ("advise", "--length", 100, "--width", 64, "--need", "mixing")
    assert "--any-shape" in headwise(*size).out
    assert "--any-shape" not in headwise(*size, "--multiple-of", 64).out


def test_explain_shows_curves_and_every_finding(headwise):
    out = headwise("advise", "--length", 128, "--width", 64, "--explain").out
    assert "This measures the first layer" not in out
    assert "head dimension" in out and "Retrieval" in out and "FLOPs: per token" in out
    lines = out.splitlines()
    assert any(line.split()[:2] == ["heads", "rank"] and "FLOPs" in line for line in lines)
    for column in ("mixing", "retrieval"):
        assert sum(line.startswith(f"{column}: ") for line in lines) == 1, column
    assert max(map(len, out.splitlines())) <= 80


def test_numbers_may_end_in_k_and_m(headwise):
    numbers = ("advise", "--width", 64, "--json", "--length")
    assert json.loads(headwise(*numbers, "20k").out)["length"] == 20_000
    assert json.loads(headwise(*numbers, "1.5M").out)["length"] == 1_500_000
    limited = headwise("advise", "--length", 64, "--width", 64, "--params", "4k", "--json").out
    assert all(c["costs"]["parameters"] <= 4000 for c in json.loads(limited)["choices"])


def test_the_report_and_the_export_are_written(headwise, tmp_path):
    out = tmp_path / "deep" / "report.html"
    ran = headwise("advise", "--length", 128, "--width", 64, "--html", out)
    assert ran.code == 0 and f"report: {out}" in ran.err
    page = out.read_text()
    card, table, following = (page.index(part) for part in ('class="card"', "<table>", "type next"))
    assert card < table < following < page.index("<svg")
    assert page.count('class="advised"') >= 1 and "prefers-color-scheme: dark" in page
    assert "headwise trial SOURCE --width 64 --candidates 1x64" in page
    assert "<code>--task</code>" in page and "`" not in page.split("<style>")[1].split("<svg")[0]
    headwise("advise", "--length", 512, "--width", 768, "--html", out)
    page = out.read_text()
    assert "Without measured tokens" in page and "<code>--need retrieval</code>" in page
    exported = headwise("advise", "--length", 128, "--width", 64, "--export", "qwen3")
    assert json.loads(exported.out)["head_dim"] == 64
    assert "vocab_size 32000" in exported.err and "causal mask" in exported.err
    layer = headwise("advise", "--length", 128, "--width", 64, "--export", "torch").out
    assert "nn.MultiheadAttention(embed_dim=64, num_heads=1" in layer


def test_the_legend_explains_only_what_the_table_shows(headwise, tmp_path):
    """With seven rows or more, the one that costs too much is not among the first six."""
    config = {"model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_positions": 128}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "text.txt").write_text(" ".join(f"w{i * i % 97}" for i in range(4000)))
    asked = (tmp_path / "text.txt", "--config", tmp_path / "config.json")
    assert "over yours" not in headwise("advise", *asked).out
    whole = headwise("advise", *asked, "--explain").out
    assert whole.count("over yours") == 2  # the cell, and what it means


def test_a_config_cannot_command_the_terminal(headwise, tmp_path):
    config = {"model_type": "\x1b[31mred", "hidden_size": 768, "num_attention_heads": 12}
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = headwise("advise", "--config", tmp_path / "config.json").out
    assert "?[31mred" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("source", [("--config", "config.json"), ("digits",)])
@pytest.mark.parametrize("columns", [80, 100])
def test_everything_explained_fits_the_terminal(headwise, tmp_path, monkeypatch, source, columns):
    config = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = headwise("advise", *source, "--explain").out.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.strip().startswith(("value 50%", "digits-pixels ")) for line in lines)
