"""``headwise advise`` in a terminal: at a glance, explained, as JSON, exported."""

import json

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
    for word in ("habit", "binds", "own start"):
        assert word not in " ".join(lines)


def test_explain_shows_curves_and_every_finding(headwise):
    out = headwise("advise", "--length", 128, "--width", 64, "--explain").out
    assert "head dimension" in out and "Retrieval" in out and "FLOPs per token" in out
    assert max(map(len, out.splitlines())) <= 80


def test_numbers_may_end_in_k_and_m(headwise):
    numbers = ("advise", "--width", 64, "--json", "--length")
    assert json.loads(headwise(*numbers, "20k").out)["length"] == 20_000
    assert json.loads(headwise(*numbers, "1.5M").out)["length"] == 1_500_000
    limited = headwise("advise", "--length", 64, "--width", 64, "--params", "4k", "--json").out
    assert all(c["costs"]["parameters"] <= 4000 for c in json.loads(limited)["choices"])


def test_the_report_and_the_export_are_written(headwise, tmp_path):
    out = tmp_path / "deep" / "report.html"
    ran = headwise("advise", "--length", 128, "--width", 64, "--out", out)
    assert ran.code == 0 and f"report: {out}" in ran.err
    assert 'class="card"' in out.read_text()
    exported = headwise("advise", "--length", 128, "--width", 64, "--export", "qwen3")
    assert json.loads(exported.out)["head_dim"] == 64
    assert "vocab_size 32000" in exported.err and "causal mask" in exported.err
    layer = headwise("advise", "--length", 128, "--width", 64, "--export", "torch").out
    assert "nn.MultiheadAttention(embed_dim=64, num_heads=1" in layer


def test_the_command_and_the_function_have_the_same_parameters():
    import inspect

    from headwise.advice import advise as function
    from headwise.cli.advise import advise as command

    own = {"data", "explain", "out", "export", "as_json"}
    theirs = set(inspect.signature(function).parameters) - {"progress"}
    assert set(inspect.signature(command).parameters) - own == theirs
