"""headwise scan on a tiny checkpoint."""

import json

from cli.scanned import checkpoint, own_store, run, transformers, usual
from headwise.errors import BadInputError

__all__ = ["checkpoint", "own_store"]  # fixtures


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
    assert [line.split()[0] for line in lines[2:6]] == ["rank", "layer", "0", "1"]
    assert "bytes of keys and values per token" in " ".join(lines)
    legend = "rank 0.01, rank 1e-8: singular values of at least that; output: rank of A·V to 1%;"
    assert legend in " ".join(printed.out.split())


def test_new_weights_take_a_column_with_two_lines(checkpoint, capsys):
    """Its header took four lines: rank, 0.01, new, weights."""
    code, printed = run(capsys, *usual(checkpoint), "--against-init")
    lines = printed.out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[2:5]] == ["rank", "layer", "0"]
    assert lines[2].split()[-1] == "new" and lines[3].split()[-2:] == ["0.01", "mask"]
    assert "new 0.01: rank 0.01 with new weights." in " ".join(printed.out.split())


def test_a_choice_of_heads_tells_no_saving(checkpoint, capsys):
    """Savings were told for two heads as if the layer had no others."""
    code, printed = run(capsys, *usual(checkpoint), "--layers", "1", "--heads", "0,2")
    assert code == 0
    assert printed.out.startswith("1 layer, 2 heads, 8 tokens")
    assert [line.split()[0] for line in printed.out.splitlines()[3:5]] == ["layer", "1"]
    assert "would save" not in printed.out


def test_every_output_is_written(checkpoint, capsys, tmp_path):
    files = [tmp_path / name for name in ("map.png", "rows.csv", "report.html")]
    given = ("--plot", files[0], "--csv", files[1], "--html", files[2], "--against-init")
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
    monkeypatch.setattr("headwise.probing.scan", None)
    code, printed = run(capsys, "scan", checkpoint, "--random", "--html", tmp_path)
    assert (code, printed.out, len(printed.err.splitlines())) == (1, "", 1)
    assert f"cannot write {tmp_path}: it is a folder; pass the name" in printed.err
    (tmp_path / "rows.csv").mkdir()
    assert run(capsys, "scan", checkpoint, "--random", "--csv", tmp_path / "rows.csv")[0] == 1
    (tmp_path / "file").touch()
    code, printed = run(capsys, "scan", checkpoint, "--random", "--html", tmp_path / "file" / "a")
    assert (code, printed.out) == (1, "")
    assert "cannot write into the folder" in printed.err
    monkeypatch.setattr("os.access", lambda *_: False)
    code, printed = run(capsys, "scan", checkpoint, "--random", "--html", tmp_path / "a.html")
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


def test_a_file_of_weights_stands_for_its_folder(checkpoint, capsys):
    """The page promised it, and the command refused it."""
    first = run(capsys, *usual(checkpoint), "--json")[1].out
    code, printed = run(
        capsys, "scan", checkpoint / "model.safetensors", *usual(checkpoint)[2:], "--json"
    )
    assert code == 0
    assert json.loads(printed.out)["rows"] == json.loads(first)["rows"]


def test_files_are_written_though_the_reader_of_the_output_has_left(
    checkpoint, capsys, tmp_path, monkeypatch
):
    def closed(*_):
        raise BadInputError("the reader has left", hint="none")

    monkeypatch.setattr("headwise.cli.scan._print", closed)
    rows = tmp_path / "rows.csv"
    assert run(capsys, *usual(checkpoint), "--csv", rows)[0] == 1
    assert len(rows.read_text().splitlines()) == 9


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
    settings = folder / "preprocessor_config.json"
    for content, words in (
        ("{", "expected JSON fields in"),
        ("[]", "expected JSON fields in"),
        ('{"image_mean": "x"}', "expected three numbers as image_mean in preprocessor_config.json"),
        ('{"image_std": [1, 2]}', "expected three numbers as image_std"),
        ('{"image_std": [0, 0, 0]}', "expected image_std above 0"),
    ):
        settings.write_text(content)
        code, printed = run(capsys, "scan", folder, "--images", images)
        assert (code, len(printed.err.splitlines())) == (1, 1)
        assert words in printed.err
    settings.unlink()
    (images / "0.png").write_bytes(b"damaged")
    code, printed = run(capsys, "scan", folder, "--images", images)
    assert code == 1 and printed.err.count("\n") == 1
    assert "0.png is not a picture" in printed.err
