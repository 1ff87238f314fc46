import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import headwise as package
from headwise.attention import ranking
from headwise.attention.initialisation import gaussian_heads
from headwise.attention.scores import logits, softmax_matrix

KEYS = {
    "rank",
    "method",
    "tolerance",
    "dtype",
    "shape",
    "stable_rank",
    "effective_rank",
    "energy_rank_90",
    "energy_rank_99",
    "delta",
    "reason",
    "temperature",
    "mask",
    "inputs",
}


@pytest.fixture(scope="module")
def head():
    """Queries and keys of one head, 41 tokens, head dimension 7."""
    queries, keys = gaussian_heads(1, 41, width=53, head_dim=7, seed=3)
    return queries[0], keys[0]


def svd_rank(matrix, epsilon=1e-8):
    return int((torch.linalg.svdvals(matrix.double()) >= epsilon).sum())


def save(path, tensor):
    np.save(path, tensor.numpy())
    return path


def test_one_matrix_gives_one_json_object(headwise, tmp_path, head):
    matrix = softmax_matrix(*head)
    ran = headwise("rank", save(tmp_path / "a.npy", matrix), "--json")
    found = json.loads(ran.out)
    expected = svd_rank(matrix)
    assert ran.code == 0
    assert set(found) == KEYS
    assert found["rank"] == {"low": expected, "high": expected}
    assert 1 < expected < 41
    assert found["shape"] == [41, 41]
    assert (found["dtype"], found["tolerance"]) == ("float64", 1e-8)
    assert found["temperature"] is None
    sigma = torch.linalg.svdvals(matrix)
    assert found["stable_rank"] == pytest.approx(float((sigma / sigma[0]).square().sum()))
    assert 0 < found["delta"] < 1e-11
    assert found["reason"] is None
    asked = {"file": str(tmp_path / "a.npy"), "logits": False, "mask": "none", "tolerance": "1e-8"}
    assert found["inputs"] == asked


def test_a_batch_gives_a_list_with_the_place_of_each_matrix(headwise, tmp_path, head):
    matrix = softmax_matrix(*head)
    batch = torch.stack([matrix, torch.eye(41).double(), torch.ones(41, 41).double() / 41] * 2)
    ran = headwise("rank", save(tmp_path / "b.npy", batch.reshape(2, 3, 41, 41)), "--json")
    found = json.loads(ran.out)
    assert [row["index"] for row in found] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert [row["rank"]["low"] for row in found] == [svd_rank(matrix), 41, 1] * 2
    assert found[2]["effective_rank"] == pytest.approx(1)


def test_a_batch_of_one_is_still_a_list(headwise, tmp_path):
    ran = headwise("rank", save(tmp_path / "b.npy", torch.eye(3).double()[None]), "--json")
    assert [row["rank"]["low"] for row in json.loads(ran.out)] == [3]


def test_batches_measured_in_parts_keep_their_order(headwise, tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "STRIDE", 50)
    diagonals = torch.tensor([[1.0] * rank + [0.0] * (5 - rank) for rank in (5, 2, 3, 1, 4)])
    path = save(tmp_path / "b.npy", torch.diag_embed(diagonals).double())
    found = json.loads(headwise("rank", path, "--json").out)
    assert [row["rank"]["low"] for row in found] == [5, 2, 3, 1, 4]
    assert [row["index"] for row in found] == [[0], [1], [2], [3], [4]]


def test_queries_and_keys_equal_the_logits_and_the_matrix(headwise, tmp_path, head):
    q, k = (save(tmp_path / f"{n}.npy", t) for n, t in zip("qk", head, strict=True))
    from_qk = json.loads(headwise("rank", "--queries", q, "--keys", k, "--json").out)
    path = save(tmp_path / "l.npy", logits(*head).values)
    from_logits = json.loads(headwise("rank", path, "--logits", "--json").out)
    assert from_qk["rank"] == from_logits["rank"]
    assert from_qk["rank"]["low"] == svd_rank(softmax_matrix(*head))
    assert from_qk["temperature"] == pytest.approx(7**0.5)
    assert from_qk["delta"] > from_logits["delta"]
    assert (from_qk["inputs"]["queries"], from_qk["inputs"]["keys"]) == (str(q), str(k))
    assert from_logits["inputs"]["logits"] is True


def test_temperature_and_mask_change_what_is_measured(headwise, tmp_path, head):
    q, k = (save(tmp_path / f"{n}.npy", t) for n, t in zip("qk", head, strict=True))
    given = ("rank", "--queries", q, "--keys", k, "--json")
    causal = json.loads(headwise(*given, "--temperature", 20, "--mask", "causal").out)
    lower = torch.ones(41, 41, dtype=torch.bool).tril()
    expected = svd_rank(softmax_matrix(*head, temperature=20.0, mask=lower))
    assert causal["rank"] == {"low": expected, "high": expected}
    assert (causal["temperature"], causal["mask"]) == (20, "causal")
    mask = save(tmp_path / "mask.npy", lower)
    from_file = json.loads(headwise(*given, "--temperature", 20, "--mask", mask).out)
    assert from_file["rank"] == causal["rank"]
    assert from_file["stable_rank"] == causal["stable_rank"]


def test_window_masks_compose(headwise, tmp_path, head):
    q, k = (save(tmp_path / f"{n}.npy", t) for n, t in zip("qk", head, strict=True))
    given = ("rank", "--queries", q, "--keys", k, "--json", "--mask")
    rows, columns = torch.arange(41)[:, None], torch.arange(41)
    band = (columns <= rows) & (rows - columns < 4)
    found = json.loads(headwise(*given, "causal+window:4").out)
    assert found["rank"]["low"] == svd_rank(softmax_matrix(*head, mask=band))
    assert json.loads(headwise(*given, "window:1").out)["rank"]["low"] == 41


def test_queries_and_keys_from_one_file(headwise, tmp_path, head):
    path = tmp_path / "qk.safetensors"
    save_file({"q": head[0], "k": head[1]}, path)
    ran = headwise(
        *("rank", "--queries", path, "--keys", path, "--json"),
        *("--queries-name", "q", "--keys-name", "k"),
    )
    assert json.loads(ran.out)["rank"]["low"] == svd_rank(softmax_matrix(*head))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("1e-3", 3), ("1e-5", 4), ("relative:1e-3", 2), ("dtype", 4), ("absolute:0.5", 2)],
)
def test_tolerance_rules(headwise, tmp_path, rule, expected):
    planted = torch.diag(torch.tensor([100.0, 1.0, 1e-2, 1e-4] + [0.0] * 37).double())
    path = save(tmp_path / "planted.npy", planted)
    found = json.loads(headwise("rank", path, "--tolerance", rule, "--json").out)
    assert found["rank"] == {"low": expected, "high": expected}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_rounded_matrix_gives_an_interval_that_contains_the_true_rank(
    headwise, tmp_path, head, dtype
):
    matrix = softmax_matrix(*head)
    path = tmp_path / "rounded.safetensors"
    save_file({"a": matrix.to(dtype)}, path)
    found = json.loads(headwise("rank", path, "--json").out)
    assert found["rank"]["low"] <= svd_rank(matrix) <= found["rank"]["high"]
    assert found["rank"]["low"] < found["rank"]["high"]
    assert found["dtype"] == str(dtype).removeprefix("torch.")
    assert found["reason"].startswith(f"{found['dtype']} hides whatever is below")


def test_a_certain_rank_is_described(headwise, tmp_path):
    out = " ".join(headwise("rank", save(tmp_path / "a.npy", torch.eye(5).double())).out.split())
    assert "rank 5 of 5, certain" in out
    assert "5 × 5, float64" in out
    assert "note:" not in out


def test_the_rounding_of_a_dtype_is_described(headwise, tmp_path, head):
    path = tmp_path / "rounded.pt"
    torch.save(softmax_matrix(*head).bfloat16(), path)
    words = " ".join(headwise("rank", path).out.split())
    assert "rank between" in words
    assert "bfloat16 hides whatever is below" in words
    assert "pass the float64 logits, or queries and keys" in words


def test_a_singular_value_at_the_tolerance_is_described(headwise, tmp_path):
    path = save(tmp_path / "a.npy", torch.diag(torch.tensor([1.0, 1e-8]).double()))
    words = " ".join(headwise("rank", path).out.split())
    assert "rank between 1 and 2" in words
    assert "try another tolerance" in words
    found = json.loads(headwise("rank", path, "--json").out)
    assert found["reason"] in words


def test_the_temperature_is_stated(headwise, tmp_path, head):
    q, k = (save(tmp_path / f"{n}.npy", t) for n, t in zip("qk", head, strict=True))
    words = " ".join(headwise("rank", "--queries", q, "--keys", k).out.split())
    assert "/ 2.64575, mask none" in words


def test_a_big_batch_is_summarised(headwise, tmp_path):
    diagonals = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]).double()
    out = headwise("rank", save(tmp_path / "b.npy", torch.diag_embed(diagonals.repeat(10, 1)))).out
    assert "30 matrices, each 3 × 3" in " ".join(out.split())
    assert "mean rank 2 of 3 (0.667), every one certain" in out
    assert "10 more matrices are in the summary" in out
    table = [line.split() for line in out.partition("─")[2].splitlines() if line.strip()]
    places = [line[0] for line in table if line[0].isdecimal() and len(line) == 6]
    assert places == [str(index) for index in range(20)]
    summary = {line[0]: line[1] for line in table if line[0] in ("mean", "least", "most")}
    assert summary == {"mean": "2", "least": "1", "most": "3"}


def test_a_batch_with_intervals_says_how_many_and_why(headwise, tmp_path):
    batch = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 1.0, 0.0]))]).bfloat16()
    path = tmp_path / "b.pt"
    torch.save(batch, path)
    words = " ".join(headwise("rank", path).out.split())
    assert "1 not certain: bfloat16 hides" in words
    assert "2 to 3" in words


def test_a_matrix_that_looks_like_logits_is_remarked(headwise, tmp_path, head):
    path = save(tmp_path / "l.npy", logits(*head).values)
    assert "if it holds logits, pass --logits" in " ".join(headwise("rank", path).out.split())


def test_logits_that_look_like_a_matrix_are_remarked(headwise, tmp_path, head):
    path = save(tmp_path / "a.npy", softmax_matrix(*head))
    assert "rows already sum to one" in " ".join(headwise("rank", path, "--logits").out.split())


@pytest.mark.parametrize("columns", [80, 120])
def test_nothing_is_wider_than_the_terminal(headwise, tmp_path, monkeypatch, columns):
    batch = save(tmp_path / "b.npy", torch.rand(25, 7, 5, dtype=torch.float64))
    single = save(tmp_path / "s.npy", torch.rand(7, 5, dtype=torch.float64))
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (("rank", batch), ("rank", single), ("rank", "--help"), ("--help",)):
        lines = headwise(*arguments).out.splitlines()
        assert max(map(len, lines)) <= columns
        assert len(lines) > 5


@pytest.mark.parametrize("name", ["[", "[bold].npy", "run[red].npy", "[link=x].npy"])
def test_file_names_with_brackets_are_printed_as_they_are(headwise, tmp_path, head, name):
    folder = tmp_path / "run["
    folder.mkdir()
    path = folder / (name.removesuffix(".npy") + "].npy")
    ran = headwise("rank", save(path, softmax_matrix(*head)))
    assert ran.code == 0
    assert path.name in ran.out.replace("\n", "")
    closing = tmp_path / "[" / "bold].npy"
    closing.parent.mkdir()
    ran = headwise("rank", save(closing, torch.stack([softmax_matrix(*head)] * 2)))
    assert ran.code == 0
    assert "[/bold].npy" in ran.out.replace("\n", "")


def test_the_error_for_keys_does_not_name_the_option_of_the_file(headwise, tmp_path, head):
    np.savez(tmp_path / "k.npz", a=head[1].numpy(), b=head[1].numpy())
    q = save(tmp_path / "q.npy", head[0])
    said = headwise("rank", "--queries", q, "--keys", tmp_path / "k.npz").one_line(1)
    assert "--name" not in said
    assert "pass --keys-name a or --keys-name b" in said


def masked_softmax(logits, allowed):
    weights = np.where(allowed, np.exp(logits), 0.0)
    return weights / weights.sum(-1, keepdims=True)


def test_logits_under_a_mask(headwise, tmp_path):
    """The mask is applied before the softmax; a file of booleans does the same as its name."""
    logits = np.random.default_rng(0).normal(size=(3, 13, 13))
    np.save(tmp_path / "l.npy", logits)
    np.save(tmp_path / "m.npy", np.tri(13, dtype=bool))
    np.save(tmp_path / "w.npy", masked_softmax(logits, np.tri(13, dtype=bool)))
    named, given = (
        json.loads(headwise("rank", tmp_path / "l.npy", "--logits", "--mask", mask, "--json").out)
        for mask in ("causal", tmp_path / "m.npy")
    )
    plain = json.loads(headwise("rank", tmp_path / "w.npy", "--json").out)
    for one, other, weights in zip(named, given, plain, strict=True):
        assert one["mask"] == "causal" and one["rank"] == other["rank"] == weights["rank"]
        assert one["effective_rank"] == pytest.approx(weights["effective_rank"], rel=1e-12)
        assert one["rank"] == {"low": 13, "high": 13}


def test_logits_plus_a_mask_of_floats(headwise, tmp_path):
    generator = np.random.default_rng(1)
    logits, bias = generator.normal(size=(2, 11, 11))
    np.save(tmp_path / "l.npy", logits.astype(np.float32))
    np.save(tmp_path / "b.npy", bias)
    np.save(tmp_path / "sum.npy", logits.astype(np.float32).astype(np.float64) + bias)
    added = headwise("rank", tmp_path / "l.npy", "--logits", "--mask", tmp_path / "b.npy", "--json")
    summed = headwise("rank", tmp_path / "sum.npy", "--logits", "--json")
    added, summed = json.loads(added.out), json.loads(summed.out)
    assert added["effective_rank"] == pytest.approx(summed["effective_rank"], rel=1e-12)
    assert added["rank"]["low"] <= summed["rank"]["low"] <= added["rank"]["high"]
    assert added["delta"] > 1e3 * summed["delta"], "what float32 hid of the logits is counted"


def test_a_file_name_cannot_command_the_terminal(headwise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the whole path would be shortened to the width of the terminal
    path = save(tmp_path / "a\x1b[31m\u202eb.npy", torch.eye(3, dtype=torch.float64))
    ran = headwise("rank", path.name)
    assert ran.code == 0
    assert "a?[31m?b.npy" in ran.out.replace("\n", "")
    assert not {"\x1b", "\u202e"} & {*ran.out}


def test_the_command_prints_what_the_function_returns(headwise, tmp_path, head):
    q, k = (save(tmp_path / f"{n}.npy", t) for n, t in zip("qk", head, strict=True))
    batch = save(tmp_path / "b.npy", torch.eye(3).double().expand(2, 3, 3))
    printed = json.loads(headwise("rank", "--queries", q, "--keys", k, "--json").out)
    assert printed == package.rank(queries=q, keys=k).as_json()
    assert json.loads(headwise("rank", batch, "--json").out) == package.rank(batch).as_json()
    one = save(tmp_path / "one.npy", torch.eye(3, dtype=torch.int64))
    assert json.loads(headwise("rank", one, "--json").out) == package.rank(str(one)).as_json()
    assert "3 × 3, int64" in " ".join(headwise("rank", one).out.split())


def test_a_mask_file_that_is_missing_is_a_missing_file(headwise, tmp_path):
    path = save(tmp_path / "l.npy", torch.eye(3, dtype=torch.float64))
    refusal = headwise("rank", path, "--logits", "--mask", "nomask.npy").one_line(1)
    assert "there is no file nomask.npy" in refusal
    refusal = headwise("rank", path, "--logits", "--mask", "casual").one_line(2)
    assert "expected none, causal" in refusal
