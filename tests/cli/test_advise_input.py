"""What ``headwise advise`` refuses, and what it does with what a loader prints."""

import json
import sys

import numpy as np
import pytest


def test_a_refused_report_leaves_no_file(headwise, tmp_path):
    numbers = ("advise", "--length", 128, "--width", 64)
    assert headwise(*numbers, "--html", tmp_path / "x.pdf").code == 2
    assert list(tmp_path.iterdir()) == []
    for name in ("x.HTM", "x"):
        assert headwise(*numbers, "--html", tmp_path / name).code == 0
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
            "expected images with --patch 4, got ids",
        ),
        (("--data", "nowhere:loader"), 1, "nowhere:loader failed"),
        (("--config", "conv.json"), 1, "describes no attention"),
        (("--config", "absent.json"), 1, "there is no file absent.json; pass a config.json"),
        (
            ("--params", "10", "--length", "9", "--width", "8"),
            1,
            "the smallest possible is 1 head",
        ),
        (
            ("--rank", "99", "--length", "9", "--width", "8"),
            2,
            "expected --rank of at most the width 8, got 99",
        ),
        (
            ("--multiple-of", "16", "--length", "9", "--width", "8"),
            2,
            "expected --multiple-of of at most the width 8, got 16",
        ),
        (
            ("--rank", "3", "--multiple-of", "2"),
            2,
            "pass --rank 4, or leave --multiple-of out",
        ),
        (
            ("--config", "small.json", "--params", "100"),
            1,
            "nothing fits 100 parameters and 256 cache bytes per token (the present model) at",
        ),
        (("--html", "x.pdf"), 2, "expected an HTML file, got x.pdf; pass --html x.html"),
        (("--html", "a.b.json"), 2, "pass --html a.b.html"),
        (("--html", "."), 1, "cannot write .: it is a folder; pass the name of a file"),
        (("--width", "768"), 2, "expected a SOURCE or a --length with --width 768, got neither"),
        (
            ("--length", "9", "--width", "8", "--patch", "2"),
            2,
            "expected a SOURCE to read with --patch",
        ),
        (
            ("--length", "9", "--width", "8", "--tokenizer", "word"),
            2,
            "expected a SOURCE to read with --tokenizer",
        ),
        (
            ("--length", "9", "--width", "8", "--size", "32"),
            2,
            "SOURCE to read with --size, got none; pass a SOURCE too, or leave it out",
        ),
        (
            ("--kv-bytes", "50%"),
            2,
            "expected --kv-bytes as bytes per token of one layer, in 16-bit numbers, got '50%'",
        ),
        (
            ("--length", "9", "--width", "8", "--vocabulary", "9", "--name", "a"),
            2,
            "SOURCE to read with --vocabulary, --name",
        ),
        (
            ("--config", "small.json", "--vocabulary", "9"),
            2,
            "SOURCE to read with --vocabulary",
        ),
        (("--length", "512"), 2, "expected --width with --length, got none"),
        (("--kind", "mqa"), 2, "--kind"),
        (("--export", "qwen3", "--json"), 2, "expected --export or --json, got both"),
        (("--data", "digits", "--patch", "3"), 1, "choose a patch from 1, 2, 4, 8"),
        (("--data", "digits", "--length", "17"), 1, "expected --length from 2 to 16"),
        (
            ("--tokenizer", "word"),
            2,
            "the data set of digits has no use for --tokenizer",
        ),
        (
            ("--data", "digits", "--size", "8", "--name", "a"),
            2,
            "digits has no use for --size and --name; leave that out",
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


def test_several_arrays_name_the_option_that_chooses_one(headwise, tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((4, 3)), b=np.zeros((4, 3)))
    found = headwise("advise", tmp_path / "two.npz")
    assert found.code == 1
    assert found.err.endswith("got 2; pass --name a or --name b\n")
