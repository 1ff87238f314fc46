"""Every option of every command refuses a wrong value: one line, the option's name, exit code 2."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

from headwise.cli.app import app

COMMANDS = {command.name: command.callback for command in app.registered_commands}

#: The smallest right call of each command; a wrong option is added to it.
RIGHT = {
    "advise": ("--length", "64", "--width", "32"),
    "trial": ("digits",),
    "rank": ("a.npy",),
    "scan": ("model", "--text", "t.txt"),
    "reduce": ("model", "--text", "t.txt"),  # a budget is added below
    "law": ("--length", "64"),
    "bound": ("--width", "64", "--rank", "8"),
    "reproduce": ("rank2026/table_2",),
    "report": (),
    "serve": ("--no-browser",),
    "data": (),
    "demo": (),
}

#: Values that are wrong whatever the files hold.
NUMBER = ("abc", "nan", "1.5", "-1", "0", "")
CHOICE = ("foo", "")
WRONG = {
    "advise": {
        "length": (*NUMBER, "1", "inf", "1e13"),
        "width": (*NUMBER, "1", "inf", "1e7"),
        "task": CHOICE,
        "params": (*NUMBER, "inf"),
        "kv_bytes": (*NUMBER, "inf"),
        "heads": (*NUMBER, "100000"),
        "rank": (*NUMBER, "33"),
        "multiple_of": (*NUMBER, "33"),
        "kind": CHOICE,
        "need": CHOICE,
        "mask": CHOICE,
        "patch": (*NUMBER, "2"),
        "size": (*NUMBER, "2"),
        "tokenizer": ("foo", "", "word"),
        "vocabulary": (*NUMBER, "2"),
        "seed": ("abc", "1.5"),
        "html": ("x.gif",),
        "export": CHOICE,
    },
    "trial": {
        "width": NUMBER,
        "depth": NUMBER,
        "patch": NUMBER,
        "task": CHOICE,
        "build": ("model:build",),
        "batches": ("model:batches",),
        "candidates": ("foo", "4x", "0x4", ""),
        "size": NUMBER,
        "length": NUMBER,
        "tokenizer": ("foo", ""),
        "steps": NUMBER,
        "batch": NUMBER,
        "cluster": ("foo", "local:0", ""),
        "plot": ("x.gif", "x"),
        "html": ("x.gif",),
        "rate": ("abc", "nan", "-1", "0", ""),
        "seeds": (*NUMBER, "1"),
        "minutes": ("abc", "nan", "-1", ""),
        "device": ("tpu", "cuda:x", ""),
    },
    "rank": {
        "queries": ("a.npy",),
        "queries_name": ("a",),
        "keys": ("a.npy",),
        "keys_name": ("a",),
        "temperature": ("abc", "nan", "-1", "0", "", "2"),
        "mask": ("foo", "causal", "window:0", "no.npy", ""),
        "tolerance": ("foo", "nan", "-1", "0", "relative:2", "part:1", ""),
    },
    "scan": {
        "ids": ("ids.npy",),
        "layers": ("1-", "-1", ""),
        "heads": ("foo", "1-", ""),
        "length": (*NUMBER, "1"),
        "batch": NUMBER,
        "plot": ("x.gif", "x"),
        "html": ("x.gif",),
        "store": ("foo://x", ""),
    },
    "reduce": {
        "kv_bytes": ("abc", "0", "0%", "101%", "-1", ""),
        "params": ("abc", "0", "0%", "101%", "-1", ""),
        "keep": ("abc", "nan", "-1", "0", "1.5", ""),
        "rank": NUMBER,
        "keys": CHOICE,
        "only": CHOICE,
        "html": ("x.gif",),
        "device": ("tpu", ""),
        "store": ("foo://x", ""),
        "step": NUMBER,
        "tokens": NUMBER,
        "held_out": NUMBER,
        "length": (*NUMBER, "7"),
        "heal": ("abc", "1.5", "-1", ""),
        "context": ("abc", "1.5", "-1", ""),
        "seed": ("abc", "1.5", "-1", ""),
    },
    "law": {
        "length": (*NUMBER, "1", "inf", "1e13"),
        "head_dim": (*NUMBER, "inf", "1e6"),
        "fraction": ("abc", "nan", "-1", "0", "1", ""),
        "mask": CHOICE,
        "plot": ("x.gif", "x"),
    },
    "bound": {
        "width": (*NUMBER, "1", "inf", "1e7"),
        "rank": (*NUMBER, "64", "inf"),
        "heads": (*NUMBER, "inf"),
        "error": ("abc", "nan", "-1", "0", "0.6", "inf", ""),
        "values": CHOICE,
    },
    "reproduce": {
        "exhibits": ("foo", "rank2026/tabel_1"),
        "scale": (*CHOICE, "huge", "gpu"),
        "device": ("tpu", ""),
        "only": ("foo=3", "foo", ""),
        "seconds": ("abc", "nan", "-1", ""),
        "cluster": ("foo", "local:0", ""),
        "workers": NUMBER,
        "store": ("foo://x", ""),
    },
    "report": {"exhibits": ("foo",), "store": ("foo://x", "")},
    "serve": {"port": ("abc", "1.5", "-1", "65536", ""), "store": ("foo://x", "")},
    "data": {},
    "demo": {
        "seed": ("abc", "1.5"),
        "tokens": ("abc", "1", "5000", "1.5"),
        "head_dim": ("abc", "0", "5000", "1.5"),
    },
}

#: Paths and names: whether these are wrong depends on the machine, so the exit code is 1.
ANY_TEXT = {
    "advise": {"source", "data", "config", "name"},
    "trial": {"source", "labels", "folder"},
    "rank": {"source", "name"},
    "scan": {"model", "text", "images", "csv"},
    "reduce": {"model", "text", "out"},
    "reproduce": {"out"},
    "report": {"out"},
    "serve": {"host", "token"},
    "data": {"folder"},
}

#: What the command line needs besides, so that only the option under test is wrong.
WITH = {("bound", "width"): ("--heads", "2"), ("bound", "rank"): ("--heads", "2")} | {
    ("bound", "values"): ("--heads", "2")
}

WITH |= {
    ("reduce", parameter): ("--rank", "8")
    for parameter in WRONG["reduce"]
    if parameter not in {"kv_bytes", "params", "keep", "rank"}
}

POSITIONAL = {("reproduce", "exhibits"), ("report", "exhibits")}


def spelled(parameter):
    return "--" + parameter.replace("_", "-")


CASES = [
    (command, parameter, value)
    for command, parameters in WRONG.items()
    for parameter, values in parameters.items()
    for value in values
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.eye(3))
    (tmp_path / "t.txt").write_text("a b c")
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "parameter", "value"), CASES)
def test_a_wrong_value_exits_with_2(headwise, folder, command, parameter, value):
    option = spelled(parameter)
    arguments = list(RIGHT[command])
    if (command, parameter) in POSITIONAL:
        arguments = [value]
    elif option in arguments:
        arguments[arguments.index(option) + 1] = value
    else:
        arguments += [option, value]
    said = headwise(command, *arguments, *WITH.get((command, parameter), ())).one_line(2)
    named = value if (command, parameter) in POSITIONAL else option
    assert named in said or (command, parameter) == ("reproduce", "scale"), said
    assert "`" not in said and "Value error" not in said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_tried(command):
    parameters = inspect.signature(COMMANDS[command]).parameters.values()
    flags = {one.name for one in parameters if one.default in (False, True)}
    tried = WRONG[command].keys() | ANY_TEXT.get(command, set()) | flags
    assert {one.name for one in parameters} <= tried


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("advise", "digits", "--data", "digits"), "SOURCE or --data, got both"),
        (("advise", "--json", "--export", "torch"), "--export or --json, got both"),
        (("advise", "--width", "64"), "--length"),
        (("advise", "--length", "64"), "--width"),
        (("bound", "--width", "64", "--rank", "8"), "--heads or --error, got neither"),
        (
            ("bound", "--width", "64", "--rank", "8", "--heads", "2", "--error", "0.1"),
            "--heads or --error, got both",
        ),
        (("rank",), "SOURCE, or --queries and --keys"),
        (("reproduce",), "headwise reproduce --list"),
        (("reduce", "model", "--text", "t.txt"), "expected one budget of --kv-bytes"),
        (
            ("reproduce", "all", "--from-records", "--take-records"),
            "--from-records or --take-records, got both",
        ),
        (("trial",), "headwise trial digits"),
        (("trial", "digits", "--labels", "a.npy"), "--labels"),
    ],
)
def test_options_that_do_not_go_together_exit_with_2(headwise, folder, arguments, words):
    assert words in headwise(*arguments).one_line(2)


@pytest.mark.parametrize(
    ("command", "before"),
    [(verb, before) for verb in ("advise", "scan", "trial") for before in ("--out", "--report")]
    + [("reduce", "--report")],
)
def test_former_options_of_the_report_name_the_new_one(headwise, folder, command, before):
    said = headwise(command, *RIGHT[command], before, "report.html").one_line(2)
    assert (
        said == f"headwise: expected --html FILE for the report, got {before}; pass --html FILE\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("rank",),
        ("rank", "a.npy", "--tolerance", "small"),
        ("rank", "a.npy", "--mask", "cuasal"),
        ("rank", "a.npy", "--temperature", "2"),
        ("reproduce", "foo"),
        ("advise", "--heads", "0"),
        ("law", "--length", "0"),
    ],
)
def test_a_wrong_call_is_refused_before_torch_is_imported(folder, arguments):
    code = (
        "import sys\nfrom headwise.cli.app import main\n"
        f"try:\n    main({list(arguments)})\nexcept SystemExit as left:\n"
        "    print(left.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"], done.stderr
