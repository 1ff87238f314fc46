"""A tiny checkpoint to scan, and how its command is run."""

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


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Rows go to a folder of the test."""
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*map(str, arguments)])
    return stopped.value.code or 0, capsys.readouterr()


def usual(checkpoint):
    return "scan", checkpoint, "--text", checkpoint / "text.txt"
