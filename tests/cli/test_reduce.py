"""headwise reduce: options in, one function, a table, JSON or a page out."""

import json
import subprocess
import sys

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
        checkpoint, "--text", text, "--kv-bytes", "50%", "--out", folder, "--html", page,
        "--curve", *SMALL,
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "keeps 50% of its KV cache: perplexity" in out
    assert "keys: latent = a vector of lower rank" in out
    assert "AutoModelForCausalLM.from_pretrained(" in out
    assert "perplexity" in out
    assert "decode at 16 tokens" in out
    assert "attention parameters" in out
    assert "all heads (of 16)" in " ".join(out.split())
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
        (
            ["--rank", "2", "--keys", "all"],
            2,
            "'--keys': 'all' is not one of 'latent', 'rotated', 'pairs'",
        ),
        (["--kv-bytes", "1000000"], 1, "expected --kv-bytes of at most 256, what the original has"),
        (["--params", "40%"], 1, "a smaller --step, or --keys pairs, which cuts queries too"),
        (["--rank", "3"], 2, "expected a --rank that --step 2 allows, got 3; pass 2 or 4"),
        (["--rank", "7", "--step", "100"], 2, "a --rank of at least 16 with --step 100, got 7"),
        (["--rank", "2", "--tokens", "1"], 2, "expected --tokens of at least 72"),
        (["--rank", "2", "--device", "moon"], 2, "expected cpu, cuda or cuda:1, got 'moon'"),
        (["--rank", "2", "--device", "meta"], 1, "there is no device 'meta' on this machine"),
        (
            ["--kv-bytes", "50%", "--out", "."],
            1,
            "the folder . exists already; choose another name",
        ),
        (["--rank", "2", "--length", "800"], 1, "expected a text of at least"),
        (["--rank", "2", "--html", "."], 1, "cannot write .: it is a folder"),
        (["--rank", "2", "--text", "absent.txt"], 1, "there is no file absent.txt; pass the path"),
    ],
)
def test_bad_input_is_one_line(checkpoint, text, capsys, options, code, words):
    assert run(checkpoint, "--text", text, *SMALL, *options) == code
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1


def test_a_folder_without_a_tokenizer_is_refused(tmp_path, text, capsys):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    config = transformers.BertConfig(**sizes, intermediate_size=8, vocab_size=11)
    transformers.BertModel(config).save_pretrained(tmp_path / "tinybert")
    assert run(tmp_path / "tinybert", "--text", text, "--rank", 2, "--context", 0) == 1
    error = capsys.readouterr().err
    assert "contains no tokenizer (no tokenizer.json or vocab.txt); save the tokenizer" in error
    assert len(error.strip().splitlines()) == 1


def test_text_that_is_mostly_unknown_is_refused(checkpoint, tmp_path, capsys):
    (tmp_path / "other.txt").write_text("unheard " * 900)
    assert run(checkpoint, "--text", tmp_path / "other.txt", "--rank", 2, *SMALL) == 1
    assert "got 900 unknown tokens of 900" in capsys.readouterr().err


def test_a_text_with_one_sequence_to_judge_has_no_error(checkpoint, tmp_path, capsys):
    (tmp_path / "short.txt").write_text(" ".join(TEXT.split()[: 24 * 5]))
    assert run(checkpoint, "--text", tmp_path / "short.txt", "--rank", 2, "--json", *SMALL) == 0
    assert json.loads(capsys.readouterr().out)["after"]["error"] is None


def test_other_families_are_named(tmp_path, text, capsys):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=8, n_head=2, n_layer=1, vocab_size=11)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    assert run(tmp_path / "gpt2", "--text", text, "--rank", 2) == 1
    assert "llama, mistral, qwen2, bert, got gpt2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "words"),
    [("gpt2", "qwen2, bert, got gpt2"), ("no/such/model", "such/model'; check the path")],
)
def test_a_model_is_refused_before_torch_is_imported(tmp_path, text, place, words):
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text('{"model_type": "gpt2"}')
    asked = ["reduce", str(tmp_path / place), "--text", str(text), "--rank", "2"]
    code = (
        "import sys\nfrom headwise.cli.app import main\n"
        f"try:\n    main({asked})\n"
        "finally:\n    print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "False\n")
    assert words in done.stderr


def test_help_names_the_families_and_shows_how_queries_and_keys_are_cut_alone(capsys):
    assert run("--help") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Llama, Mistral, Qwen2 or BERT" in out
    assert "--rank 8 --only keys" in out
    assert "with the queries that meet them" in out
    assert "share of the weighted squared singular values of every cut matrix" in out


def test_a_model_that_cannot_be_fetched_is_one_line(text, capsys, monkeypatch):
    transformers = pytest.importorskip("transformers")

    def unreachable(*place, **more):
        raise OSError("We couldn't connect to the hub.")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    assert run("nosuch", "--text", text, "--rank", "2") == 1
    error = capsys.readouterr().err.strip()
    assert "expected a folder, or a hub id while online, got 'nosuch'" in error
    assert len(error.splitlines()) == 1


def test_a_file_that_is_no_model_is_named(text, tmp_path, capsys):
    (tmp_path / "bad.npy").touch()
    assert run(tmp_path / "bad.npy", "--text", text, "--rank", "2") == 1
    assert "bad.npy" in capsys.readouterr().err
