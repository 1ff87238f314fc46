"""headwise scan on a tiny checkpoint."""

import json
import re

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


def test_people_get_one_line_for_each_layer_and_a_summary(checkpoint, capsys):
    code, printed = run(capsys, "scan", checkpoint, "--text", checkpoint / "text.txt")
    lines = printed.out.splitlines()
    assert code == 0
    assert lines[0].startswith("2 layers, 8 heads, 8 tokens, head dimension 4, float32")
    assert [line.split()[0] for line in lines[2:5]] == ["layer", "0", "1"]
    assert "bytes of KV cache per token" in " ".join(lines)


def test_every_output_is_written(checkpoint, capsys, tmp_path):
    files = [tmp_path / name for name in ("map.png", "rows.csv", "report.html")]
    given = ("--plot", files[0], "--csv", files[1], "--out", files[2], "--against-init")
    code, printed = run(capsys, "scan", checkpoint, "--random", "--batch", "3", *given, "--json")
    found = json.loads(printed.out)
    assert code == 0
    assert all(file.stat().st_size > 0 for file in files)
    assert {row["sequences"] for row in found["rows"]} == {3}
    assert len(found["initial"]) == len(found["rows"]) == 8
    assert [row["layer"] for row in found["initial"]] == [row["layer"] for row in found["rows"]]
    assert str(tmp_path) not in files[2].read_text()


def test_an_output_that_cannot_be_written_is_refused_before_measuring(
    checkpoint, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("headwise.probing.scan_checkpoint", None)
    code, printed = run(capsys, "scan", checkpoint, "--random", "--out", tmp_path)
    assert (code, printed.out, len(printed.err.splitlines())) == (1, "", 1)
    assert f"cannot write {tmp_path}: it is a folder; pass the name" in printed.err
    assert run(capsys, "scan", checkpoint, "--random", "--csv", tmp_path)[0] == 1
    (tmp_path / "file").touch()
    code, printed = run(capsys, "scan", checkpoint, "--random", "--out", tmp_path / "file" / "a")
    assert (code, printed.out) == (1, "")
    assert "cannot write into the folder" in printed.err
    monkeypatch.setattr("os.access", lambda *_: False)
    code, printed = run(capsys, "scan", checkpoint, "--random", "--out", tmp_path / "a.html")
    assert (code, printed.out) == (1, "")
    assert "(Permission denied)" in printed.err


def test_layers_heads_and_ids(checkpoint, capsys, tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text("2 3 4 2 3\n4, 3, 2\n")
    given = ("--ids", ids, "--batch", "2", "--layers", "1", "--heads", "0,2-3", "--json")
    code, printed = run(capsys, "scan", checkpoint, *given)
    rows = json.loads(printed.out)["rows"]
    assert code == 0
    assert [row["head"] for row in rows] == [0, 2, 3]
    assert {row["tokens"] for row in rows} == {4.0}


def test_a_stopped_scan_resumes(checkpoint, capsys, tmp_path, monkeypatch):
    given = ("scan", checkpoint, "--random", "--store", tmp_path / "rows.db", "--json")
    first = run(capsys, *given)[1].out
    monkeypatch.setattr("headwise.probing.scanning.head_numbers", None)
    assert run(capsys, *given)[1].out == first


def test_images_are_read_at_the_size_of_the_model(capsys, tmp_path):
    from PIL import Image

    from hugging_face.tiny_models import tiny

    folder, images = tmp_path / "vit", tmp_path / "images"
    tiny(transformers, "vit").save_pretrained(folder)
    images.mkdir()
    for number in range(3):
        Image.new("RGB", (20, 13), (80 * number, 10, 200)).save(images / f"{number}.png")
    code, printed = run(capsys, "scan", folder, "--images", images, "--batch", "2", "--json")
    rows = json.loads(printed.out)["rows"]
    assert code == 0
    assert {row["sequences"] for row in rows} == {2}
    assert {row["tokens"] for row in rows} == {5.0}
    words = tmp_path / "text.txt"
    words.write_text("a b c")
    code, printed = run(capsys, "scan", folder, "--text", words)
    assert code == 1
    assert "expected images for ViTModel, got text" in printed.err
    code, printed = run(capsys, "scan", folder, "--images", tmp_path)
    assert code == 1
    assert "expected a folder with images" in printed.err
    (images / "0.png").write_bytes(b"damaged")
    code, printed = run(capsys, "scan", folder, "--images", images)
    assert code == 1 and printed.err.count("\n") == 1
    assert "0.png is not a picture" in printed.err


def usual(checkpoint):
    return "scan", checkpoint, "--text", checkpoint / "text.txt"


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
        (("--random", "--heads", "one"), "--heads 'one' is not a list of numbers"),
    ):
        code, printed = run(capsys, "scan", checkpoint, *options)
        assert (code, len(printed.err.splitlines())) == (2, 1)
        assert words in printed.err
    (tmp_path / "ids.txt").write_text("2 3 99999")
    code, printed = run(capsys, "scan", checkpoint, "--ids", tmp_path / "ids.txt")
    assert code == 1
    assert "expected token ids from 0 to 30, got 2 to 99999" in printed.err


def test_a_folder_without_a_tokenizer_is_refused_for_text_alone(capsys, tmp_path):
    from hugging_face.tiny_models import tiny

    folder, words, ids = tmp_path / "tinybert", tmp_path / "words.txt", tmp_path / "ids.txt"
    tiny(transformers, "bert").bert.save_pretrained(folder)
    words.write_text("It was the best of times, it was the worst of times.")
    ids.write_text("2 3 4 2 3")
    code, printed = run(capsys, "scan", folder, "--text", words)
    assert (code, len(printed.err.splitlines())) == (1, 1)
    assert "contains no tokenizer (no tokenizer.json or vocab.txt)" in printed.err
    assert "save the tokenizer there, or pass --ids" in printed.err
    assert run(capsys, "scan", folder, "--ids", ids)[0] == 0
    assert run(capsys, "scan", folder, "--random", "--length", "8")[0] == 0


def test_a_tokenizer_that_needs_no_files_is_accepted(tmp_path):
    from headwise.hugging_face.loading import Source, load_tokenizer

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
    import shutil

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
    import shutil

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
