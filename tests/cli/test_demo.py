import json

import torch

from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import softmax_matrix


def test_the_numbers_of_the_demo_are_right(headwise):
    found = json.loads(headwise("demo", "--json").out)
    queries, keys = gaussian_heads(1, 200, width=384, head_dim=64, seed=0)
    matrix = softmax_matrix(queries[0], keys[0])
    rank = int((torch.linalg.svdvals(matrix) >= 1e-8).sum())
    exact = {"low": rank, "high": rank}
    assert found["headwise_from_logits"] == found["headwise"]["float64"] == exact
    single = int((torch.linalg.svdvals(matrix.float()) > 1e-8).sum())
    assert found["torch.linalg.matrix_rank(A, atol=1e-8)"]["float32"] == single > rank
    for dtype in ("float32", "bfloat16"):
        interval = found["headwise"][dtype]
        assert interval["low"] <= rank <= interval["high"]
        assert interval["low"] < interval["high"]


def test_the_demo_shows_what_its_json_says(headwise):
    found = json.loads(headwise("demo", "--tokens", 40, "--head-dim", 5, "--json").out)
    out = headwise("demo", "--tokens", 40, "--head-dim", 5).out
    rank = found["headwise_from_logits"]["low"]
    assert f"The rank is {rank} of 40" in out
    row = next(line for line in out.splitlines() if "atol=1e-8" in line)
    answers = found["torch.linalg.matrix_rank(A, atol=1e-8)"].values()
    assert row.split()[-3:] == [str(answer) for answer in answers]
    assert "1e-08┤┄" in out


def test_another_seed_is_another_head(headwise):
    sizes = ("--tokens", 60, "--head-dim", 8, "--json")
    first, second = (json.loads(headwise("demo", "--seed", s, *sizes).out) for s in (1, 2))
    assert (first.pop("seed"), second.pop("seed")) == (1, 2)
    assert first != second


def test_the_demo_says_what_tolerances_are(headwise):
    out = " ".join(headwise("demo", "--tokens", 40, "--head-dim", 5).out.split())
    assert "use a tolerance relative to the largest singular value by default" in out
    assert "headwise returns every rank that is consistent with the rounding." in out


def test_the_demo_fits_a_terminal(headwise, monkeypatch):
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = headwise("demo", "--tokens", 40, "--head-dim", 5).out.splitlines()
        assert 70 < max(map(len, lines)) <= columns


def test_sizes_out_of_range_are_wrong_usage(headwise):
    ran = headwise("demo", "--tokens", 1)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "--tokens" in ran.err
    assert "expected a number from 2 to 2,000, got 1;" in ran.err
    assert "expected a whole number" in headwise("demo", "--seed", "0.5").one_line(2)
    assert "<int range>" not in headwise("demo", "--help").out
