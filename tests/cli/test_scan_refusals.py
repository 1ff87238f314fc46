"""What headwise scan refuses or notes: one line each."""

import io
import json
import re
import shutil

import numpy as np
import pytest

from cli.scanned import checkpoint, own_store, run, transformers, usual

__all__ = ["checkpoint", "own_store"]  # fixtures


def test_bad_input_is_one_line(checkpoint, capsys, tmp_path):
    code, printed = run(capsys, "scan", tmp_path, "--text", checkpoint / "text.txt")
    assert code == 1
    assert "expected a folder with a config.json or one GGUF file" in printed.err
    code, printed = run(capsys, "scan", checkpoint, "--text", tmp_path / "absent.txt")
    assert code == 1
    assert "absent.txt; pass the path of a UTF-8 text file" in printed.err
    (tmp_path / "empty.txt").write_text("")
    code, printed = run(capsys, "scan", checkpoint, "--text", tmp_path / "empty.txt")
    assert code == 1
    assert "at least two tokens" in printed.err
    for options, words in (
        ((), "pass --text FILE, --images FOLDER, --ids FILE or --random"),
        (("--random", "--ids", tmp_path / "x"), "one input, got --ids and --random; pass one"),
        (("--random", "--text", tmp_path / "x"), "one input, got --text and --random; pass one"),
        (("--random", "--heads", "one"), "expected numbers and ranges such as 0,2-4, got 'one'"),
        (
            ("--random", "--heads", "5-3"),
            "smaller to the larger number, below 10,000, got '5-3'",
        ),
        (
            ("--random", "--layers", "0-99999999999"),
            "larger number, below 10,000, got '0-99999999999'",
        ),
        (
            ("--random", "--csv", "rows.json"),
            "expected a CSV file, got rows.json; pass --csv rows.csv",
        ),
        (("--random", "--csv", "rows"), "expected a CSV file, got rows; pass --csv rows.csv"),
    ):
        code, printed = run(capsys, "scan", checkpoint, *options)
        assert (code, len(printed.err.splitlines())) == (2, 1)
        assert words in printed.err
    np.save(tmp_path / "ids.npy", np.ones((1, 4), bool))
    code, printed = run(capsys, "scan", checkpoint, "--ids", tmp_path / "ids.npy")
    assert code == 1
    assert "expected whole numbers of shape (sequences, tokens), got torch.bool" in printed.err
    many = ("scan", checkpoint, "--random", "--batch", "999999999999")
    code, printed = run(capsys, *many)
    assert code == 1
    assert "sequences of 512 tokens needs" in printed.err and "smaller --batch" in printed.err
    (tmp_path / "ids.txt").write_text("2 3 99999")
    code, printed = run(capsys, "scan", checkpoint, "--ids", tmp_path / "ids.txt")
    assert code == 1
    assert "expected token ids from 0 to 30, got 2 to 99999" in printed.err


def scan_with(checkpoint, capsys, tmp_path, changes):
    """Scan a copy of the checkpoint with another config; the copy, and the one line of error."""
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    config = json.loads((other / "config.json").read_text()) | changes
    (other / "config.json").write_text(json.dumps(config))
    code, printed = run(capsys, "scan", other, "--random", "--length", "8")
    assert (code, len(printed.err.splitlines())) == (1, 1)
    return other, printed.err


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("hidden_size", "16", "Validation error for field 'hidden_size'"),
        ("num_attention_heads", 0, "ZeroDivisionError"),
        ("num_attention_heads", 5, "hidden size (16) is not a multiple of the number of att"),
        ("hidden_act", "none", "KeyError: 'none'"),
        ("hidden_size", 32, "its weights do not have the shapes that config.json states"),
        ("dtype", "float99", "AttributeError: module 'torch' has no attribute 'float99'"),
        ("model_type", "nosuch", "has model type 'nosuch' but Transformers does not recognize"),
    ],
)
def test_a_config_that_cannot_be_used_is_one_line(
    checkpoint, capsys, tmp_path, field, value, words
):
    other, said = scan_with(checkpoint, capsys, tmp_path, {field: value})
    assert f"expected a checkpoint in '{other}': " in said
    assert words in said


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model_type", [], "expected a name for model_type, got []"),
        ("model_type", {"a": 1}, "expected a name for model_type, got {'a': 1}"),
        ("num_hidden_layers", 10**9, "expected at most 2,000 for num_hidden_layers, got 1,000,000"),
        ("num_labels", 10**9, "expected at most 100,000 for num_labels, got 1,000,000,000"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused_at_once(
    checkpoint, capsys, tmp_path, field, value, words
):
    """A list for a name read "unhashable type", and 10^9 layers were built one by one."""
    other, said = scan_with(checkpoint, capsys, tmp_path, {field: value})
    assert f"{other / 'config.json'}: {words}" in said
    assert "Error" not in said


@pytest.mark.parametrize("content", [b"", b"junk" * 100, None])
def test_damaged_weights_are_one_line(checkpoint, capsys, tmp_path, content):
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    weights = other / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2] if content is None else content)
    code, printed = run(capsys, "scan", other, "--random", "--length", "8")
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "SafetensorError: Error while deserializing header" in printed.err


def test_layers_that_the_checkpoint_lacks_are_noted(checkpoint, capsys, tmp_path):
    """transformers draws them at random, and their rows looked like those of trained layers."""
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    config = json.loads((other / "config.json").read_text()) | {"num_hidden_layers": 3}
    (other / "config.json").write_text(json.dumps(config))
    code, printed = run(capsys, "scan", other, "--random", "--length", "8", "--json")
    (note,) = json.loads(printed.out)["notes"]
    assert code == 0
    assert "The checkpoint lacks 16 weights, such as 'encoder.layer.2.attention" in note


def test_models_that_take_neither_text_nor_images_are_refused(capsys, tmp_path):
    config = transformers.WhisperConfig(
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        vocab_size=31,
        num_mel_bins=4,
        max_source_positions=8,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
    )
    transformers.WhisperModel(config).save_pretrained(tmp_path / "whisper")
    code, printed = run(capsys, "scan", tmp_path / "whisper", "--random")
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "expected a model that takes text or images, got WhisperModel" in printed.err


def test_one_tower_alone_is_told_to_take_both(capsys, tmp_path):
    from hugging_face.tiny_models import tiny

    parts = [tiny(transformers, f"clip_{each}").config.to_dict() for each in ("text", "image")]
    config = transformers.CLIPConfig(text_config=parts[0], vision_config=parts[1])
    transformers.CLIPModel(config).save_pretrained(tmp_path / "clip")
    (tmp_path / "ids.txt").write_text("3 4 5 6 2")
    code, printed = run(capsys, "scan", tmp_path / "clip", "--ids", tmp_path / "ids.txt")
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "CLIPModel could not run on this batch" in printed.err
    assert "needs text and images together" in printed.err
    code, printed = run(capsys, "scan", tmp_path / "clip", "--random", "--length", "6")
    assert code == 0
    names = [line.split()[0] for line in printed.out.splitlines()]
    assert {"vision_model.0", "text_model.1"} <= set(names)


def test_padding_of_a_decoder_is_left_out(capsys, tmp_path):
    """Its mask was not passed on, and the padding of shorter sequences was measured."""
    config = transformers.T5Config(
        d_model=16, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=31
    )
    transformers.T5Model(config).save_pretrained(tmp_path / "t5")
    (tmp_path / "ids.txt").write_text("3 4 5 6 7 8 9 2\n5 6 7 2\n")
    given = ("--ids", tmp_path / "ids.txt", "--batch", "2", "--json")
    rows = json.loads(run(capsys, "scan", tmp_path / "t5", *given)[1].out)["rows"]
    inside = [row for row in rows if "SelfAttention" in row["layer"]]
    assert len(inside) == 4
    assert {row["tokens"] for row in inside} == {6.0}


def test_latent_attention_tells_no_saving(capsys, tmp_path):
    """The config's head_dim is that of the rotary part alone, and the cache holds the latent."""
    from hugging_face.tiny_models import tiny

    tiny(transformers, "deepseek_v3").model.save_pretrained(tmp_path / "mla")
    code, printed = run(capsys, "scan", tmp_path / "mla", "--random", "--length", "8", "--json")
    found = json.loads(printed.out)
    assert code == 0
    assert found["summary"]["kv_bytes"] is None
    (note,) = found["notes"]
    assert "the KV cache can hold 12 numbers per token and layer" in note


def test_an_input_is_said_to_be_cut_only_if_it_was(checkpoint, capsys, tmp_path):
    other = tmp_path / "short"
    from hugging_face.tiny_models import SIZES

    config = transformers.BertConfig(**SIZES, max_position_embeddings=6)
    transformers.BertModel(config).save_pretrained(other)
    (tmp_path / "ids.txt").write_text("3 4 5 6")
    given = ("scan", other, "--ids", tmp_path / "ids.txt", "--json")
    assert json.loads(run(capsys, *given)[1].out)["notes"] == []
    (tmp_path / "ids.txt").write_text("3 4 5 6 3 4 5 6")
    (note,) = json.loads(run(capsys, *given)[1].out)["notes"]
    assert note == "The model takes at most 6 tokens; the input was cut to them."


def test_text_that_is_no_utf8_is_refused_from_the_standard_input_too(
    checkpoint, capsys, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b \xff c")))
    code, printed = run(capsys, "scan", checkpoint, "--text", "-")
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "the standard input is no readable UTF-8 text" in printed.err


def test_no_bar_of_another_library_is_shown(capsys):
    """tqdm had read its settings before they were made, and a GGUF file showed its bar."""
    import tqdm

    from headwise.cli.console import quieten_transformers

    quieten_transformers()
    list(tqdm.tqdm(range(2)))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("family", "absent"),
    [("bert", "(no tokenizer.json or vocab.txt)"), ("llama", "(no tokenizer.json")],
)
def test_a_folder_without_a_tokenizer_is_refused_for_text_alone(capsys, tmp_path, family, absent):
    from hugging_face.tiny_models import tiny

    folder, words, ids = tmp_path / "tiny", tmp_path / "words.txt", tmp_path / "ids.txt"
    tiny(transformers, family).base_model.save_pretrained(folder)
    words.write_text("It was the best of times, it was the worst of times.")
    ids.write_text("2 3 4 2 3")
    capsys.readouterr()  # transformers shows a bar while it saves
    code, printed = run(capsys, "scan", folder, "--text", words)
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert f"contains no tokenizer {absent}" in printed.err
    assert "save the tokenizer there, or pass --ids" in printed.err
    assert run(capsys, "scan", folder, "--ids", ids)[0] == 0
    assert run(capsys, "scan", folder, "--random", "--length", "8")[0] == 0


def test_a_tokenizer_that_needs_no_files_is_accepted(tmp_path):
    from headwise.hugging_face.loading import load_tokenizer
    from headwise.hugging_face.places import Source

    config = transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    config.save_pretrained(tmp_path)
    settings = json.dumps({"tokenizer_class": "ByT5Tokenizer"})
    (tmp_path / "tokenizer_config.json").write_text(settings)
    assert load_tokenizer(Source(str(tmp_path)))("ab")["input_ids"] == [100, 101, 1]


def test_text_that_is_mostly_unknown_is_refused(checkpoint, capsys, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a b what is this")
    code, printed = run(capsys, "scan", checkpoint, "--text", words)
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "expected text that the tokenizer knows, got 3 unknown tokens of 5" in printed.err
    words.write_text("a b c what is")
    assert run(capsys, "scan", checkpoint, "--text", words)[0] == 0


def test_a_hub_id_offline_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, printed = run(capsys, "scan", "nobody/no-such-model", "--random")
    assert code == 1
    assert "expected a folder, or a hub id while online, got 'nobody/no-such-model'" in printed.err
    assert len(printed.err.splitlines()) == 1


def test_a_model_too_large_is_refused_before_loading(checkpoint, capsys, monkeypatch):
    from headwise.hugging_face import loading

    monkeypatch.setattr(loading, "available_bytes", lambda device: 30_000)
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", None)
    code, printed = run(capsys, *usual(checkpoint))
    assert code == 1
    assert re.search(
        r"[\d,]+ parameters in float32 need [\d.]+ kB of memory, 30 kB is free; "
        r"in bfloat16 it needs \d+ kB; choose a model of at most 6,000 parameters",
        printed.err,
    )


def test_nan_weights_name_the_layer(checkpoint, capsys, tmp_path):
    import torch

    broken = tmp_path / "broken"
    shutil.copytree(checkpoint, broken)
    model = transformers.AutoModel.from_pretrained(broken)
    with torch.no_grad():
        model.encoder.layer[1].attention.self.key.weight.fill_(torch.nan)
    model.save_pretrained(broken)
    code, printed = run(capsys, "scan", broken, "--random")
    assert code == 1
    assert "NaN or infinity in layer 'encoder.layer.1.attention.self'" in printed.err


def test_a_config_whose_head_dim_is_ignored_is_noted(checkpoint, capsys, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(checkpoint, other)
    config = json.loads((other / "config.json").read_text()) | {"head_dim": 64}
    (other / "config.json").write_text(json.dumps(config))
    code, printed = run(capsys, "scan", other, "--random", "--json")
    assert code == 0
    assert (
        "The config says head_dim 64, but the queries have 4" in json.loads(printed.out)["notes"][0]
    )


def test_padding_without_a_mask_is_refused(checkpoint):
    import torch

    from headwise.errors import BadInputError
    from headwise.probing import scan
    from hugging_face.tiny_models import tiny

    model = tiny(transformers, "llama")
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0]])
    with pytest.raises(BadInputError, match=r"attention_mask for input_ids with padding \(token 0"):
        scan(model, {"input_ids": ids})
    found = scan(model, {"input_ids": ids, "attention_mask": (ids > 0).long()})
    assert {row.tokens for row in found.rows} == {3.0}


def test_a_tokenizer_whose_pattern_backtracks_too_long_is_refused(capsys, checkpoint, tmp_path):
    from tokenizers import Regex, Tokenizer, pre_tokenizers

    folder = tmp_path / "slow"
    shutil.copytree(checkpoint, folder)
    slow = Tokenizer.from_file(str(folder / "tokenizer.json"))
    slow.pre_tokenizer = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")
    slow.save(str(folder / "tokenizer.json"))
    (folder / "text.txt").write_text("a" * 40 + "! b a")
    code, said = run(capsys, *usual(folder))
    assert code == 1
    assert "the tokenizer cannot read this text (Onig: Regex search error" in said.err
