"""headwise reduce: options in, one function, a table, JSON or a page out."""

import json

import pytest
import torch

from headwise.cli.app import main

TEXT = " ".join(f"word{number * number % 53}" for number in range(900))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {word: i for i, word in enumerate(["[UNK]", *(f"word{n}" for n in range(53))])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    folder = tmp_path_factory.mktemp("models") / "tiny"
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]").save_pretrained(
        folder
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=2,
        intermediate_size=24,
        vocab_size=54,
        initializer_range=0.2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def text(tmp_path):
    place = tmp_path / "text.txt"
    place.write_text(TEXT)
    return place


SMALL = ("--step", "2", "--length", "24", "--context", "16")


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(each) for each in ("reduce", *arguments)])
    return left.value.code or 0


def test_a_model_is_cut_reported_and_saved(checkpoint, text, tmp_path, capsys):
    page, folder = tmp_path / "report.html", tmp_path / "cut"
    code = run(
        checkpoint, "--text", text, "--kv-bytes", "50%", "--out", folder, "--report", page,
        "--curve", *SMALL,
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "KV bytes per token" in out
    assert "perplexity" in out
    assert "decode at 16 tokens" in out
    assert (folder / "model.safetensors").is_file()
    assert "<svg" in page.read_text()


def test_json_has_the_fields_of_the_result(checkpoint, text, capsys):
    assert run(checkpoint, "--text", text, "--rank", 4, "--json", "--keys", "pairs", *SMALL) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"]["name"] == "perplexity"
    assert [cut["rank"] for cut in found["cuts"]] == [4, 4]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--kv-bytes", "1%"], 1, "expected --kv-bytes of at least"),
        (["--kv-bytes", "50%", "--rank", "2"], 2, "got --kv-bytes and --rank"),
        ([], 2, "got none"),
        (["--rank", "2", "--keys", "all"], 2, "'--keys': 'all' is not one of 'latent', 'pairs'"),
        (["--kv-bytes", "50%", "--out", "."], 1, "folder that does not exist"),
        (["--rank", "2", "--length", "800"], 1, "expected a text of at least"),
    ],
)
def test_bad_input_is_one_line(checkpoint, text, capsys, options, code, words):
    assert run(checkpoint, "--text", text, *SMALL, *options) == code
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_other_families_are_named(tmp_path, text, capsys):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=8, n_head=2, n_layer=1, vocab_size=11)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    assert run(tmp_path / "gpt2", "--text", text, "--rank", 2) == 1
    assert "llama, mistral, qwen2, bert, got gpt2" in capsys.readouterr().err
