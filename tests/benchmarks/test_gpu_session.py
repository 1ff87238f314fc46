"""The plan for a GPU can be carried out, and a call ends in time with what its jobs wrote."""

import argparse
import importlib
import json
import lzma
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.advice import language, sweep
from benchmarks.gpu_plan import CALLS, PREPARE, Call, Job

from benchmarks import gpu_carry, gpu_session

LINES = [(job, line) for call in CALLS.values() for job in call.jobs for line in job.lines]
ROW = """echo '{{"a": 1}}' >> {rows}"""


@pytest.mark.parametrize("number", CALLS)
def test_a_call_is_within_what_the_machine_takes(number):
    call = CALLS[number]
    assert call.minutes <= 9.5
    assert len(call.carry) <= 8
    assert len(gpu_carry.command(number)) <= 2000
    before = [job for k in range(1, number + 1) for job in CALLS[k].jobs]
    assert len({job.into for job in before if job.into}) + 3 <= gpu_session.MOST_FILES


def test_names_are_unique_and_what_is_carried_can_be_made():
    jobs = {job for call in CALLS.values() for job in call.jobs}
    assert len({job.name for job in jobs}) == len(jobs)
    made = {Path(name).parent / Path(name).stem.split("-")[0] for name in PREPARE}
    # Made with that of code, and with that of packages.
    made |= {Path("local/language/prose.npz"), Path("local/advice-data/libraries.npz")}
    carried = {name for call in CALLS.values() for name in call.carry}
    assert {Path(name).parent / Path(name).stem.split("-")[0] for name in carried} <= made


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize(("job", "line"), LINES, ids=lambda own: getattr(own, "name", ""))
def test_every_module_takes_its_options(job, line, tiny):
    text = gpu_session.script(Job(job.name, (line,), 0), Path("folder"), 100.0, tiny)
    for command in text.replace("&", "\n").splitlines():
        words = shlex.split(command.removesuffix("|| failed=1"))
        if "-m" not in words:
            continue
        name, own = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
        assert find_spec(name) is not None
        module = importlib.import_module(name) if hasattr(find_spec(name), "loader") else None
        if name.startswith("benchmarks.") and hasattr(module, "arguments"):
            module.arguments(own[: own.index("||")] if "||" in own else own)


def test_every_named_job_of_language_models_is_there():
    for _, line in (one for one in LINES if "advice.language" in one[1]):
        words = shlex.split(line)
        names = words[words.index("--jobs") + 1].split(",")
        given = argparse.Namespace(jobs=",".join(names), lengths=None)
        assert all(any(name in job.name for job in language.chosen(given)) for name in names)


def test_four_splits_of_each_set_are_left():
    known = Path(sweep.__file__).parent / "records" / "rows_vision_h200_202611.jsonl"
    done = {sweep.key_of(row) for row in sweep.read_rows([known])}
    for task in ("svhn", "cifar100"):
        left = sweep.cells([sweep.BENCHES[task]], ["width"], done)
        assert {cell.geometry.qk_rank for cell in left} == {1, 2, 4, 32}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Two calls; the second goes on with what the first did not finish."""
    jobs = (
        Job("alone", ("echo begin; sleep 0.3; date +%s%N > {folder}/end",), 0, first=True),
        Job(
            "rows", (f"date +%s%N > {{folder}}/begin; {ROW} :: ; {ROW}", "echo last"), 0, "r.jsonl"
        ),
        Job("endless", (f"{ROW}; test -e {{folder}}/go || sleep 60",), 0, "r.jsonl", low=True),
        Job("wrong", ("false", f"{ROW}; echo no luck"), 0, "other.jsonl"),
        Job("absent", ("true",), 0, needs=("nowhere",)),
    )
    calls = {1: Call("one", 0.04, (), jobs), 2: Call("two", 0.2, (), (), goes_on=True)}
    monkeypatch.setattr(gpu_session, "CALLS", calls)
    monkeypatch.setattr(gpu_session, "JOBS", {job.name: job for job in jobs})
    monkeypatch.setattr(gpu_session, "PATIENCE", 1.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(number, **more):
    given = {"call": number, "out": Path(f"out{number}"), "tiny": False, "only": None, **more}
    given.setdefault("minutes", gpu_session.CALLS[number].minutes)
    assert gpu_session.run(argparse.Namespace(**given)) == 0
    return given["out"]


def test_a_call_ends_in_time_and_a_later_one_goes_on(plan, capsys):
    out = call(1)
    told = capsys.readouterr().out
    states = {line.split()[0]: line for line in told.splitlines() if line[:1].isalpha()}
    assert " done " in states["alone"]
    assert " done " in states["rows"] and states["rows"].endswith("last")
    assert " cut " in states["endless"]
    assert "failed (1)" in states["wrong"] and "no luck" in told
    assert "left out: no nowhere" in states["absent"]
    assert [json.loads(line) for line in (out / "r.jsonl").read_text().splitlines()] == [
        {"a": 1}
    ] * 2
    assert "==== rows" in lzma.decompress((out / "logs.txt.xz").read_bytes()).decode()
    work = gpu_session.WORK
    assert int((work / "alone/end").read_text()) < int((work / "rows/begin").read_text())

    (work / "endless/go").touch()
    out = call(2)
    told = capsys.readouterr().out
    assert {line.split()[0] for line in told.splitlines()[1:3]} == {"endless", "wrong"}
    # The second call brings back what the first one wrote too.
    assert len((out / "r.jsonl").read_text().splitlines()) == 3
    assert (work / "endless/state").read_text() == "done"


def test_a_trial_adds_its_words_and_keeps_apart(plan):
    call(1, tiny=True, only=["rows"])
    assert len((gpu_session.TINY / "rows/rows.jsonl").read_text().splitlines()) == 2
    assert not (gpu_session.WORK / "rows").exists()


def test_wheels_and_modules_are_laid_out(plan):
    import zipfile

    wheels = Path("local/gpu/wheels")
    wheels.mkdir(parents=True)
    (wheels / "kornia_rs.py").write_text("io = None\n")
    with zipfile.ZipFile(wheels / "some-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some/__init__.py", "")
    gpu_session.SITE.mkdir(parents=True)
    gpu_session.unpack()
    assert (gpu_session.SITE / "some/__init__.py").exists()
    assert (gpu_session.SITE / "kornia_rs.py").read_text() == "io = None\n"


def test_the_command_of_a_call_is_told(capsys):
    gpu_carry.tell(1)
    told = capsys.readouterr().out
    assert 'python3 -m benchmarks.gpu_session --call 1 --out "$OUT" --minutes 5' in told
    assert '["local/gpu/wheels", "local/realdata/cifar10-1"' in told
