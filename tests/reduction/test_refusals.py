"""What reduce and load refuse: wrong types and values get one line, before the calibration."""

import json
import os
import subprocess
import sys

import pytest

import headwise
from headwise.errors import BadInputError, HeadwiseError, ParameterError

TEXT = " ".join(f"word{number * number % 53}" for number in range(900))
SMALL = {"step": 2, "length": 24, "context": 0}

#: Values of a wrong type, or wrong for every model, of each parameter.
WRONG = {
    "model": [3, None, ["m"]],
    "text": [3, None, ["a text"], b"a text"],
    "kv_bytes": [0.5, "half", True, [1], 0, -1, "0%", "200%", float("nan")],
    "params": [0.5, "half", True, [1], 0, "101%", float("inf")],
    "keep": ["90%", True, [0.9], 0, 1.5, float("nan")],
    "rank": ["8", 8.5, True, [8], 0, -1],
    "keys": ["all", 3, ["latent"], True],
    "only": ["foo", 3, ["keys"], True],
    "step": ["2", 0, 1.5, None, [2]],
    "tokens": ["all", 0, 1.5, [64]],
    "held_out": ["all", 0, None, [64]],
    "length": ["long", 7, 1.5, [24]],
    "heal": ["no", -1, None, 0.5],
    "curve": ["a", b"a", 3, ["a"], [2], [0], [None], {"a": 1}],
    "context": ["none", -1, None],
    "device": [3, None, "moon", ["cpu"]],
    "seed": ["a", -1, None, 0.5],
    "tokenizer": [3, "a"],
    "out": [3, ["a"]],
    "store": [3, ["a"]],
    "progress": [3, None, "bar"],
}

CALL = """
import json, sys
import torch
import headwise
from headwise.errors import HeadwiseError
wrong = eval(sys.argv[1], {"nan": float("nan"), "inf": float("inf")})
for name, values in wrong.items():
    for value in values:
        asked = {"model": torch.nn.Linear(2, 2), "text": "a text", "tokenizer": print, name: value}
        if name not in ("kv_bytes", "params", "keep"):
            asked.setdefault("rank", 8)
        model, text = asked.pop("model"), asked.pop("text")
        try:
            headwise.load(value) if name == "folder" else headwise.reduce(model, text, **asked)
        except HeadwiseError as error:
            print(json.dumps([name, str(error)]))
        except Exception as error:
            print(json.dumps([name, None, repr(value), repr(error)[:200]]))
"""


def test_every_parameter_refuses_what_is_of_another_type():
    """In a separate process: here types are checked at every call."""
    wrong = WRONG | {"folder": [3, None, ["a"], 1.5]}
    given = [sys.executable, "-c", CALL, repr(wrong)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each for each in said if each[1] is None] == []
    assert len(said) == sum(map(len, wrong.values()))
    for name, message in said:
        assert f"`{name}" in message or name in message.split("`")[1:2], message
        assert message.startswith("expected ") and "\n" not in message and len(message) < 250


def test_every_parameter_of_reduce_is_tried_with_wrong_values():
    import inspect

    assert set(inspect.signature(headwise.reduce).parameters) == set(WRONG)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rank": 17}, r"`rank` of at most 16, that of the original, got 17"),
        ({"rank": 3}, r"`rank` that `step=2` allows, got 3; pass 2 or 4, or another `step`"),
        ({"rank": 7, "step": 8}, r"`rank` of at least 8 with `step=8`, got 7; pass a larger rank"),
        ({"rank": 3, "step": 1, "keys": "pairs"}, r"`rank` that `step=1` allows, got 3; pass 2 or"),
        ({"keep": 0.9, "step": 100}, r"`step` with a multiple .* below 16, got 100"),
        ({"kv_bytes": 1000}, r"`kv_bytes` of at most 256, what the original has, got 1,000; pass"),
        ({"kv_bytes": "110%"}, r"`kv_bytes` of at most 100%, got 110%"),
        ({"kv_bytes": "0.5"}, r"`kv_bytes` as a whole number .*, got '0.5'; pass '50%' for ex"),
        ({"params": 10**6}, r"`params` of at most 6,144, what the original has, got 1,000,000"),
        ({"rank": 4, "tokens": 1}, r"`tokens` of at least 72 for sequences of 24 .*, got 1; pass"),
        ({"rank": 4, "held_out": 1}, r"`held_out` of at least 24 for sequences of 24 .*, got 1;"),
        ({"rank": 4, "curve": [0.9, 2]}, r"shares in `curve` of at most 1, got 2"),
        ({"rank": 4, "curve": [0.9, 0.1]}, r"shares in `curve` of at least 0.1875, got 0.1; pass"),
    ],
)
def test_what_cannot_be_done_as_asked_is_refused(tiny, tokenizer, monkeypatch, asked, words):
    monkeypatch.setattr("headwise.reduction.reducing.calibrate", None)  # refused before it
    with pytest.raises(BadInputError, match=words) as refused:
        headwise.reduce(tiny("llama"), TEXT, tokenizer=tokenizer, **{**SMALL, **asked})
    assert "\n" not in str(refused.value)


def test_the_usual_curve_has_the_shares_that_some_ranks_meet(tiny, tokenizer):
    asked = {**SMALL, "step": 4, "kv_bytes": "50%", "curve": True}
    found = headwise.reduce(tiny("llama"), TEXT, tokenizer=tokenizer, **asked)
    assert [point.share for point in found.curve] == [0.9, 0.75, 0.6, 0.5, 0.4]


def test_an_encoder_has_no_choice_of_keys(tiny, tokenizer):
    with pytest.raises(ParameterError, match=r"no `keys` for bert, got 'latent'; leave `keys` out"):
        headwise.reduce(tiny("bert"), TEXT, tokenizer=tokenizer, rank=4, keys="latent", length=12)


def test_the_name_of_a_file_is_no_text(tiny, tokenizer, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputError, match=r"got the name of a file; pass Path\(...\).read_text"):
        headwise.reduce(tiny("llama"), "text.txt", tokenizer=tokenizer, rank=4, **SMALL)
    for text in ("absent.txt", "a" * 5000, "a\0b"):
        with pytest.raises(HeadwiseError) as other:
            headwise.reduce(tiny("llama"), text, tokenizer=tokenizer, rank=4, **SMALL)
        assert "name of a file" not in str(other.value)


@pytest.mark.parametrize("content", ["[]", "3", '{"headwise": 3}', '{"headwise": {"format": 1}}'])
def test_a_config_of_another_form_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(BadInputError, match="expected a folder that headwise reduce wrote"):
        headwise.load(os.fspath(tmp_path))
