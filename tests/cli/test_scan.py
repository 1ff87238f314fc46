"""headwise scan on a tiny checkpoint."""

import json

import pytest

from headwise.cli.app import main

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    from tokenizers import Tokenizer, models, pre_tokenizers

    from hugging_face.tiny_models import tiny

    folder = tmp_path_factory.mktemp("checkpoint")
    words = {"[UNK]": 0, "[PAD]": 1, "a": 2, "b": 3, "c": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )
    fast.save_pretrained(folder)
    tiny(transformers, "bert").bert.save_pretrained(folder)
    (folder / "text.txt").write_text("a b c a b b c a")
    return folder


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*map(str, arguments)])
    return stopped.value.code or 0, capsys.readouterr()


def test_every_head_is_a_row(checkpoint, capsys, tmp_path):
    picture = tmp_path / "map.svg"
    given = ("scan", checkpoint, "--text", checkpoint / "text.txt", "--json", "--plot", picture)
    code, printed = run(capsys, *given)
    rows = json.loads(printed.out)["rows"]
    assert code == 0
    assert [(row["layer"][-16:], row["head"]) for row in rows[:2]] == [
        ("0.attention.self", 0),
        ("0.attention.self", 1),
    ]
    assert len(rows) == 8
    assert {row["tokens"] for row in rows} == {8.0}
    assert picture.stat().st_size > 0


def test_people_get_one_line_for_each_layer(checkpoint, capsys):
    code, printed = run(capsys, "scan", checkpoint, "--text", checkpoint / "text.txt")
    assert code == 0
    assert len(printed.out.strip().splitlines()) == 3


def test_bad_input_is_one_line(checkpoint, capsys, tmp_path):
    code, printed = run(capsys, "scan", tmp_path, "--text", checkpoint / "text.txt")
    assert code == 1
    assert "expected a folder with a config.json" in printed.err
    code, printed = run(capsys, "scan", checkpoint, "--text", tmp_path / "absent.txt")
    assert code == 2
    assert "is not a readable UTF-8 file" in printed.err
    (tmp_path / "empty.txt").write_text("a")
    code, printed = run(capsys, "scan", checkpoint, "--text", tmp_path / "empty.txt")
    assert code == 1
    assert "at least two tokens" in printed.err
