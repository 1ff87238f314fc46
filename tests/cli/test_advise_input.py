"""What ``headwise advise`` refuses, and what it does with what a loader prints."""

import json
import sys

import pytest


def test_a_refused_report_leaves_no_file(headwise, tmp_path):
    numbers = ("advise", "--length", 128, "--width", 64)
    assert headwise(*numbers, "--out", tmp_path / "x.pdf").code == 2
    assert list(tmp_path.iterdir()) == []
    for name in ("x.HTM", "x"):
        assert headwise(*numbers, "--out", tmp_path / name).code == 0
        assert "<svg" in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--data", "equal.npy"), 1, "all 10 tokens are equal"),
        (("--data", "nan.npy"), 1, "40 of 40 token values are not finite"),
        (("--data", "one.npy"), 1, "at least two tokens per sequence, got one"),
        (("--data", "ids.npy", "--vocabulary", "9"), 1, "outside a vocabulary of 9"),
        (("--data", "damaged.npy"), 1, "damaged.npy is damaged"),
        (("--data", "absent.npy"), 1, "there is no file or folder absent.npy"),
        (("--data", "empty.txt"), 1, "empty.txt holds no text"),
        (("--data", "word.txt"), 1, "word.txt: expected at least 2 tokens, got 1 (tokenizer word)"),
        (("--data", "images.npy"), 1, "images and vectors as floats"),
        (
            ("--data", "ids.npy", "--patch", "4"),
            1,
            "patch=4 needs images, got ids",
        ),
        (("--data", "nowhere:loader"), 1, "nowhere:loader failed"),
        (("--config", "conv.json"), 1, "describes no attention"),
        (("--config", "absent.json"), 1, "cannot be opened"),
        (
            ("--params", "10", "--length", "9", "--width", "8"),
            1,
            "the smallest possible is 1 head",
        ),
        (("--rank", "99", "--length", "9", "--width", "8"), 2, "rank=99 is above the width 8"),
        (
            ("--multiple-of", "16", "--length", "9", "--width", "8"),
            2,
            "headwise: multiple_of=16 is above the width 8",
        ),
        (("--multiple-of", "0"), 2, "headwise: multiple_of: expected at least 1, got 0"),
        (
            ("--rank", "3", "--multiple-of", "2"),
            2,
            "pass rank=4, or leave multiple_of out",
        ),
        (("--params", "1.5"), 2, "params: expected a whole number, got '1.5'"),
        (("--params", "nan"), 2, "params: expected a whole number"),
        (("--kv-bytes", "0"), 2, "kv_bytes: expected 1 to"),
        (
            ("--config", "small.json", "--params", "100"),
            1,
            "nothing fits 100 parameters and 256 cache bytes per token (the present model) at",
        ),
        (("--out", "x.pdf"), 2, "--out: expected an HTML file, got x.pdf; pass --out x.html"),
        (("--out", "a.b.json"), 2, "pass --out a.b.html"),
        (
            ("--heads", "65537", "--length", "9", "--width", "8"),
            2,
            "at most 65,536, got 65,537",
        ),
        (("--width", "768"), 2, "width=768 needs a length (for the law) or a source"),
        (
            ("--length", "9", "--width", "8", "--patch", "2"),
            2,
            "no source to read with patch",
        ),
        (
            ("--length", "9", "--width", "8", "--tokenizer", "word"),
            2,
            "no source to read with tokenizer",
        ),
        (("--length", "9", "--width", "8", "--size", "32"), 2, "no source to read with size"),
        (
            ("--length", "9", "--width", "8", "--vocabulary", "9", "--name", "a"),
            2,
            "no source to read with vocabulary, name",
        ),
        (
            ("--config", "small.json", "--vocabulary", "9"),
            2,
            "no source to read with vocabulary",
        ),
        (("--length", "512"), 2, "length needs width"),
        (("--length", "1.5", "--width", "8"), 2, "length: expected a whole number"),
        (("--kind", "mqa"), 2, "--kind"),
        (("--export", "qwen3", "--json"), 2, "expected --export or --json, got both"),
        (("--data", "digits", "--patch", "3"), 1, "choose a patch from 1, 2, 4, 8"),
        (("--data", "digits", "--length", "17"), 1, "sequences have 16 tokens"),
        (
            ("--tokenizer", "word"),
            2,
            "a source of kind digits does not use tokenizer",
        ),
        (
            ("--data", "digits", "--size", "8", "--name", "a"),
            2,
            "a source of kind digits does not use size, name; leave that out",
        ),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(
    headwise, files, monkeypatch, arguments, code, words
):
    monkeypatch.chdir(files)
    ran = headwise("advise", *arguments)
    assert ran.code == code, ran.err
    assert ran.err.count("\n") == 1
    assert words in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture
def loaders(tmp_path, monkeypatch):
    (tmp_path / "talking.py").write_text(
        "import sys\nimport numpy as np\nprint('imported')\n"
        "def batches():\n"
        "    for number in range(2):\n"
        "        print('batch', number)\n"
        "        yield np.random.default_rng(number).random((4, 6, 8))\n"
        "def leaving():\n    print('no more')\n    sys.exit(3)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "talking", raising=False)


def test_what_a_loader_prints_goes_to_the_error_stream(headwise, loaders):
    found = headwise("advise", "--data", "talking:batches", "--json")
    assert json.loads(found.out)["tokens"]["sequences"] == 8
    assert found.err.splitlines()[:3] == ["imported", "batch 0", "batch 1"]


def test_a_loader_that_exits_gets_one_clear_line(headwise, loaders):
    found = headwise("advise", "--data", "talking:leaving")
    assert (found.code, found.out) == (1, "")
    assert "headwise: talking:leaving called sys.exit(3); pass PACKAGE:FUNCTION" in found.err
