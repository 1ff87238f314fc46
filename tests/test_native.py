"""What is loaded as machine code: only what this user compiled, and only if it calculates."""

import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headwise import native

TRIPLE = "long triple(long x) { return 3 * x; }\n"
FOREIGN = "long triple(long x) { return 4 * x; }\n"


@pytest.fixture(autouse=True)
def _compiler():
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")


@pytest.fixture
def cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "headwise"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "triple.c"
    path.write_text(TRIPLE)
    return path


def load(source):
    """As in a new process: nothing is remembered."""
    return native.library.__wrapped__(source)


def entry(cache_folder) -> Path:
    (found,) = cache_folder.glob("*.so")
    return found


def foreign_library(folder) -> bytes:
    source = folder / "foreign.c"
    source.write_text(FOREIGN)
    made = folder / "foreign.so"
    command = ["cc", "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    return made.read_bytes()


def test_a_source_is_compiled_once(cache_folder, source):
    assert load(source).triple(5) == 15
    made = {p.name: p.stat().st_mtime_ns for p in cache_folder.iterdir()}
    assert load(source).triple(5) == 15
    assert {p.name: p.stat().st_mtime_ns for p in cache_folder.iterdir()} == made
    assert {p.rpartition(".")[2] for p in made} == {"so", "sum"}


def test_no_compiler_means_no_library(monkeypatch, cache_folder, source):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert load(source) is None


def test_a_compiler_that_fails_means_no_library(monkeypatch, cache_folder, source):
    monkeypatch.setattr(native, "FLAGS", ("-no-such-flag",))
    assert load(source) is None


def lying_compiler(folder, script):
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        'while [ "$1" != -o ]; do shift; done; cp "$FOREIGN" "$2"',
        'while [ "$1" != -o ]; do shift; done; echo nonsense > "$2"',
    ],
    ids=["makes nothing", "another library", "no library"],
)
def test_a_broken_compiler_gives_no_library(monkeypatch, cache_folder, source, tmp_path, script):
    foreign_library(tmp_path)
    monkeypatch.setenv("FOREIGN", str(tmp_path / "foreign.so"))
    liar = lying_compiler(tmp_path, script)
    monkeypatch.setattr(shutil, "which", lambda name: str(liar))
    assert load(source) is None


def test_a_compiler_that_reorders_sums_is_not_used(cache_folder, source):
    """In a new process: such a library flushes subnormal numbers to zero when it is loaded."""
    program = (
        "import sys; from pathlib import Path; from headwise import native;"
        "native.FLAGS += ('-ffast-math',);"
        "print(native.library(Path(sys.argv[1])))"
    )
    assert printed(program, source) == "None"


@pytest.mark.parametrize("left", [0, 100, 0.5, 0.98])
def test_a_truncated_library_is_compiled_again(cache_folder, source, left):
    load(source)
    whole = entry(cache_folder).read_bytes()
    entry(cache_folder).write_bytes(whole[: int(left * len(whole)) if left < 1 else left])
    assert in_new_process(source) == "15"


def test_a_replaced_library_is_compiled_again(cache_folder, source, tmp_path):
    load(source)
    entry(cache_folder).write_bytes(foreign_library(tmp_path))
    assert in_new_process(source) == "15"


def test_a_foreign_library_with_a_fitting_checksum_is_not_used(cache_folder, source, tmp_path):
    load(source)
    entry(cache_folder).write_bytes(foreign_library(tmp_path))
    noted = entry(cache_folder).with_suffix(".sum")
    noted.write_text(native._checksum(entry(cache_folder)))
    assert in_new_process(source) == "15"


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_library_that_others_can_write_to_is_compiled_again(cache_folder, source, mode):
    load(source)
    before = entry(cache_folder).stat().st_ino
    entry(cache_folder).chmod(mode)
    assert load(source).triple(5) == 15
    assert entry(cache_folder).stat().st_ino != before
    assert not stat.S_IMODE(entry(cache_folder).stat().st_mode) & 0o022


def test_a_linked_library_is_compiled_again(cache_folder, source, tmp_path):
    load(source)
    (tmp_path / "elsewhere.so").write_bytes(entry(cache_folder).read_bytes())
    target = entry(cache_folder)
    target.unlink()
    target.symlink_to(tmp_path / "elsewhere.so")
    assert load(source).triple(5) == 15
    assert not target.is_symlink()


def test_a_folder_that_others_can_write_to_is_closed_to_them(cache_folder, source):
    cache_folder.mkdir(parents=True)
    cache_folder.chmod(0o777)
    assert load(source).triple(5) == 15
    assert stat.S_IMODE(cache_folder.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_not_used(monkeypatch, cache_folder, source):
    cache_folder.mkdir(parents=True)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert native._cache_folder() is None


def test_a_linked_folder_is_not_used(cache_folder, source, tmp_path):
    cache_folder.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    cache_folder.symlink_to(tmp_path / "elsewhere")
    assert load(source).triple(5) == 15
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_cache_that_is_no_folder_is_not_used(cache_folder, source):
    cache_folder.parent.mkdir()
    cache_folder.write_text("a file")
    assert load(source).triple(5) == 15


def test_another_processor_gets_a_library_of_its_own(monkeypatch, cache_folder, source):
    load(source)
    monkeypatch.setattr(native, "_features", lambda: "flags: none of these")
    load(source)
    assert len(list(cache_folder.glob("*.so"))) == 2


def _triple_in_child(source, answers):
    answers.put(load(source).triple(5))


def test_processes_that_compile_at_once_all_get_it(cache_folder, source):
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    children = [context.Process(target=_triple_in_child, args=(source, answers)) for _ in range(6)]
    for child in children:
        child.start()
    assert [answers.get() for _ in children] == [15] * 6
    for child in children:
        child.join()


def in_new_process(source) -> str:
    """A damaged library can end the process that loads it, and a loaded one stays loaded."""
    program = (
        "import sys; from pathlib import Path; from headwise import native;"
        "print(native.library(Path(sys.argv[1])).triple(5))"
    )
    return printed(program, source)


def printed(program, source) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program, str(source)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_account_without_a_home_folder_compiles_in_private(monkeypatch, source):
    """A container with an unknown user ended in a RuntimeError."""

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert load(source).triple(5) == 15
