"""Every mistake gets one line that says what was received and what would work."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch


@pytest.fixture
def saved(tmp_path):
    def save(array, name="a.npy"):
        np.save(tmp_path / name, array)
        return tmp_path / name

    return save


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.eye(3) * 1j, "dtype complex128; pass float64"),
        (np.full((2, 2), 2**53 + 1), "whole numbers above 2⁵³ that float64 would round"),
        (np.ones(4), "shape (4,); pass at least two dimensions"),
        (np.float64(1.0), "shape (); pass at least two dimensions"),
        (np.zeros((0, 3)), "is empty, shape (0, 3); pass at least one row"),
        (np.array([[1.0, np.nan], [0, 1]]), "finite entries, got NaN or infinity in 1 of 2 rows"),
        (np.array([[1.0, np.inf], [0, 1]]), "NaN or infinity in 1 of 2 rows; fix them before"),
        (np.array([[1.0, -np.inf], [0, 1]]), "minus infinity, as masked logits do; if these"),
        (np.array([["a"]]), "NumPy dtype str32; save it as float64"),
        (np.ones((2, 2), dtype="V2"), "NumPy dtype void16; save it as float64, or a bfloat16"),
    ],
)
def test_arrays_that_are_not_matrices(headwise, saved, array, words):
    assert words in headwise("rank", saved(array)).one_line(1)


def test_logits_that_are_not_finite_are_counted(headwise, saved):
    path = saved(np.array([[0.0, np.nan], [-np.inf, 1]]), "nan.npy")
    said = headwise("rank", path, "--logits").one_line(1)
    assert "nan.npy: expected finite logits, got NaN or infinity in 1 of 2 rows; fix" in said


def test_the_option_that_names_an_array_is_named(headwise, saved, tmp_path):
    two, one = tmp_path / "two.npz", saved(np.ones((5, 3)))
    np.savez(two, x=np.ones((5, 3)), y=np.ones((5, 3)))
    assert "pass --name x or --name y" in headwise("rank", two).one_line(1)
    said = headwise("rank", "--queries", one, "--keys", two).one_line(1)
    assert "pass --keys-name x or --keys-name y" in said


def test_a_row_of_logits_that_masks_everything(headwise, saved):
    path = saved(np.array([[0.0, -np.inf], [-np.inf, -np.inf]]))
    assert "mask everything; drop those rows" in headwise("rank", path, "--logits").one_line(1)


def test_queries_and_keys_that_do_not_fit(headwise, saved):
    q = saved(np.ones((5, 3)), "q.npy")
    for shape, words in (((5, 4), "3 dimensions per head, keys 4"), ((2, 5, 3), "batch shape")):
        k = saved(np.ones(shape), "k.npy")
        assert words in headwise("rank", "--queries", q, "--keys", k).one_line(1)


def test_a_causal_mask_needs_as_many_keys_as_queries(headwise, saved):
    q, k = saved(np.ones((5, 3)), "q.npy"), saved(np.ones((7, 3)), "k.npy")
    ran = headwise("rank", "--queries", q, "--keys", k, "--mask", "causal")
    assert "ambiguous for 5 queries and 7 keys; pass the mask as a file" in ran.one_line(1)
    assert headwise("rank", "--queries", q, "--keys", k).code == 0


def test_a_mask_that_leaves_a_row_nothing(headwise, saved):
    q, mask = saved(np.ones((2, 3)), "q.npy"), saved(np.array([[True, False]] * 2).T, "m.npy")
    ran = headwise("rank", "--queries", q, "--keys", q, "--mask", mask)
    assert "masks every key" in ran.one_line(1)


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, np.int16])
def test_whole_numbers_are_exact_and_keep_their_dtype(headwise, saved, dtype):
    ran = headwise("rank", saved(np.array([[1, 0], [1, 0]], dtype=dtype)), "--json")
    answer = json.loads(ran.out)
    assert (answer["rank"], answer["dtype"]) == ({"low": 1, "high": 1}, np.dtype(dtype).name)


def test_large_whole_numbers_are_measured_if_float64_has_them(headwise, saved):
    assert headwise("rank", saved(np.array([[2**60, 0], [0, 1]]))).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--queries", "A"),
            "expected a SOURCE, or --queries and --keys, got --queries alone; pass both",
        ),
        ((), "got neither; pass one or the other"),
        (("A", "--queries", "A"), "--queries does not go with a SOURCE; pass the SOURCE alone"),
        (("A", "--logits", "--temperature", "2"), "logits are divided already"),
        (("A", "--mask", "causal"), "if it holds logits, pass --logits too"),
        (("--queries", "A", "--keys", "A", "--logits"), "--logits goes with a SOURCE"),
        (("--queries", "A", "--keys", "A", "--name", "a"), "pass --queries-name or --keys-name"),
        (("A", "--bogus"), "No such option: --bogus"),
        (("A", "B"), "see headwise rank --help"),
        (("A", "--mask"), "Option '--mask' requires an argument; see headwise rank --help"),
    ],
)
def test_options_that_do_not_go_together(headwise, saved, arguments, words):
    path = str(saved(np.eye(3)))
    arguments = [path if argument == "A" else argument for argument in arguments]
    assert words in headwise("rank", *arguments).one_line(2)


def test_an_unknown_verb(headwise):
    assert "No such command 'rnk'" in headwise("rnk").one_line(2)


def test_no_verb_shows_the_help(headwise):
    ran = headwise()
    assert ran.code == 2
    assert "Usage: headwise" in ran.out
    assert " rank " in ran.out


def test_version(headwise):
    from headwise import __version__

    assert headwise("--version").out == f"headwise {__version__}\n"


class Pickled:
    """Would create a file if it were ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    "save", [torch.save, lambda thing, path: path.write_bytes(pickle.dumps(thing))]
)
def test_a_pickle_is_never_executed(headwise, tmp_path, save):
    trap = tmp_path / "executed"
    save(Pickled(trap), tmp_path / "a.pt")
    err = headwise("rank", tmp_path / "a.pt").one_line(1)
    assert "nothing was executed" in err or "never runs" in err
    assert not trap.exists()


def test_the_trap_would_spring(tmp_path):
    """Proof that the test above can fail: unpickled carelessly, the file appears."""
    trap = tmp_path / "executed"
    pickle.loads(pickle.dumps(Pickled(trap))).close()
    assert trap.exists()


def test_processes_end_with_one_line_and_the_right_code(headwise_process, tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    assert headwise_process("rank", tmp_path / "a.npy").code == 0
    assert "there is no file" in headwise_process("rank", tmp_path / "b.npy").one_line(1)
    assert "--bogus" in headwise_process("rank", "--bogus").one_line(2)


def test_ctrl_c_while_the_command_loads_is_one_line(tmp_path):
    """Importing takes a second, and a person may press Ctrl-C in it."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "headwise", "law"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    # Python ends itself by the signal if it came in a string that was executed.
    assert done.returncode in (130, -2)
    assert done.stderr == "headwise: stopped\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("bound", "--width", 64, "--rank", 8, "--error", "nan"),
            "a number such as 0.1, got 'nan'",
        ),
        (("bound", "--width", 64, "--rank", 8, "--heads", 0), "of at least 1, got 0;"),
        (("trial", "digits", "--rate", "nan"), "a number such as 0.1, got 'nan'"),
        (("trial", "digits", "--minutes", 0), "a number above 0, got 0;"),
        (("trial", "digits", "--minutes", -1), "a number above 0, got -1;"),
        (("trial", "digits", "--candidates", "0x4"), "got '0x4'; pass numbers above 0"),
        (("serve", "--port", "abc"), "a number such as 8765, got 'abc'"),
        (("demo", "--tokens", "x"), "a number such as 2000, got 'x'"),
        (("reduce", "m", "--text", "t", "--kv-bytes", "200%"), "at most 100%, got 200%"),
        (("rank", "a.npy", "--tolerance", "-1"), "a positive absolute tolerance, got -1"),
        (("rank", "a.npy", "--mask", "window:0"), "window:128 (1 or more)"),
    ],
)
def test_wrong_numbers_are_named_with_examples_that_fit(headwise, arguments, words):
    assert words in headwise(*arguments).one_line(2)
