"""scan on a checkpoint in Python: texts, token ids, cut models, and what is shown meanwhile."""

import logging

import numpy as np
import pytest
import torch

from cli.scanned import checkpoint, own_store, run, transformers
from headwise import load, reduce, scan
from headwise.errors import BadInputError, ParameterError
from headwise.hugging_face import loading
from headwise.hugging_face.places import find_source
from hugging_face.tiny_models import tiny

__all__ = ["checkpoint", "own_store"]  # fixtures

IDS = [[2, 3, 4, 2, 3], [4, 3, 2, 2, 4]]


def test_the_name_of_a_file_is_no_text(checkpoint, tmp_path, monkeypatch):
    """The few tokens of the name were scanned, without a word."""
    monkeypatch.chdir(checkpoint)
    with pytest.raises(ParameterError, match=r"the name of a file 'text\.txt'; pass Path\('text"):
        scan(checkpoint, text="text.txt")
    assert scan(checkpoint, text="a b c").rows
    assert scan(checkpoint, text="a b c " * 2000, length=8).rows  # longer than a name can be


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        tuple(map(tuple, IDS)),
        np.array(IDS),
        np.array(IDS, dtype=np.uint8),
        torch.tensor(IDS),
        [torch.tensor(row) for row in IDS],
        [np.array(row) for row in IDS],
    ],
    ids=["lists", "tuples", "array", "bytes", "tensor", "tensors", "arrays"],
)
def test_token_ids_are_read_from_arrays_and_lists(checkpoint, tmp_path, ids):
    """Only files were read; an array ended in a TypeError."""
    (tmp_path / "ids.txt").write_text("\n".join(" ".join(map(str, row)) for row in IDS))
    of_file = scan(checkpoint, ids=tmp_path / "ids.txt", batch=2)
    assert scan(checkpoint, ids=ids, batch=2).rows == of_file.rows
    assert scan(checkpoint, ids=ids).rows == scan(checkpoint, ids=ids[0]).rows


def test_lists_of_token_ids_may_differ_in_length(checkpoint):
    found = scan(checkpoint, ids=[[2, 3, 4, 2, 3], [4, 3, 2]], batch=2)
    assert {row.tokens for row in found.rows} == {4.0}


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([], "at least two token ids, got fewer; pass longer sequences"),
        ([[2]], "at least two token ids, got fewer"),
        ([2.5, 3.5], "expected whole numbers of shape"),
        (np.ones((1, 2, 3), int), "expected whole numbers of shape"),
        ([2, 99], "expected token ids from 0 to 30, got 2 to 99"),
    ],
)
def test_arrays_that_are_no_token_ids_are_refused(checkpoint, ids, words):
    with pytest.raises(BadInputError, match=words):
        scan(checkpoint, ids=ids)


@pytest.fixture(scope="module", params=["llama", "bert"])
def smaller(request, checkpoint, tmp_path_factory):
    """A folder that headwise reduce wrote."""
    folder = tmp_path_factory.mktemp(request.param) / "smaller"
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint, cls_token="a", sep_token="b")
    model = tiny(transformers, request.param)
    text = "a b c a b b c a " * 600
    given = {"rank": 2, "step": 2, "tokenizer": tokenizer, "out": folder, "length": 32}
    reduce(model, text, **given, context=0, held_out=600)
    return folder


def test_a_folder_of_headwise_reduce_is_scanned(smaller, capsys):
    """Its weights were said to have other shapes than its config states."""
    found = scan(smaller, ids=IDS, batch=2)
    model = load(smaller).base_model
    again = scan(model, {"input_ids": torch.tensor(IDS), "attention_mask": torch.ones(2, 5).long()})
    for column in ("coarse_rank", "output_rank", "hardmax_rank", "effective_rank"):
        assert torch.tensor(found.table(column)).allclose(torch.tensor(again.table(column)))
    assert found.kv_heads == {}
    (note,) = found.notes
    assert "headwise reduce cut this model" in note
    assert scan(smaller, random=0, length=8, against_init=True).initial is not None
    code, printed = run(capsys, "scan", smaller, "--random", "--length", "8")
    assert code == 0 and "would save" not in printed.out


def test_code_beside_the_weights_runs_only_if_it_is_ours(smaller):
    code = smaller / "modeling_headwise.py"
    ours = code.read_text()
    try:
        code.write_text(ours + "\nraise SystemExit('it ran')\n")
        with pytest.raises(BadInputError, match="got another; reduce the model again, or pass"):
            scan(smaller, ids=IDS)
        code.unlink()
        with pytest.raises(BadInputError, match="got none; reduce the model again"):
            scan(smaller, ids=IDS)
    finally:
        code.write_text(ours)


def test_loading_shows_nothing_and_restores_what_the_user_chose(tmp_path, capfd):
    """The bar "Loading weights" and a report of missing weights were shown."""
    from huggingface_hub.utils import are_progress_bars_disabled

    shown = transformers.utils.logging
    config = tiny(transformers, "bert").bert.config
    tiny(transformers, "bert").bert.save_pretrained(tmp_path)
    config.num_hidden_layers = 3
    config.save_pretrained(tmp_path)
    before = shown.get_verbosity(), shown.is_progress_bar_enabled()
    try:
        shown.set_verbosity_info()
        shown.enable_progress_bar()
        capfd.readouterr()
        assert "lacks 16 weights" in scan(tmp_path, ids=IDS).notes[0]
        assert capfd.readouterr() == ("", "")
        assert shown.get_verbosity() == logging.INFO
        assert shown.is_progress_bar_enabled() and not are_progress_bars_disabled()
    finally:
        shown.set_verbosity(before[0])
        (shown.enable_progress_bar if before[1] else shown.disable_progress_bar)()


def test_the_present_folder_is_named_in_full(checkpoint, tmp_path, monkeypatch):
    """It said "found in directory ; save"."""
    (tmp_path / "config.json").write_text((checkpoint / "config.json").read_text())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputError, match=r"found in directory \.; save the model"):
        loading.load_model(find_source("config.json"))
