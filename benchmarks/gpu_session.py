"""Run one call of the plan for a GPU: jobs side by side, ended in time, their rows in few files.

    python -m benchmarks.gpu_session --prepare --sets FOLDER
    python -m benchmarks.gpu_session --call 1 --list
    python -m benchmarks.gpu_session --call 1 --out FOLDER --minutes 5
    python -m benchmarks.gpu_session --call 1 --out FOLDER --tiny

``benchmarks.gpu_plan`` holds the calls. ``--prepare`` makes what they carry; FOLDER holds get.py
and the sets beside it. ``--list`` says what a call does, and with what command. Every job has a
folder of its own under local/gpu/work with its log, rows and checkpoints; while the machine is
kept, a later call goes on with what was cut. ``--tiny`` runs shortened jobs on a CPU, elsewhere.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.gpu_carry import prepare, tell
from benchmarks.gpu_plan import CALLS, WHEELS, Job

WORK, TINY, SITE = Path("local/gpu/work"), Path("local/gpu/tiny"), Path("local/gpu/site")
#: Seconds before the end at which a job is to save, and after which it is killed.
GRACE, PATIENCE = 35.0, 5.0

#: The share of a call after which jobs that must be alone are ended.
ALONE = 0.7

#: Seconds between two looks at the jobs, and between two copies of what they wrote.
LOOK, COPY = 0.5, 15.0

#: What comes back is at most so large.
MOST_FILES, MOST_BYTES = 8, 16 * 2**20

JOBS = {job.name: job for call in CALLS.values() for job in call.jobs}


@dataclass
class Running:
    """A job in its process, or why it has none."""

    job: Job
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    start: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    state: str = "running"

    @property
    def log(self) -> Path:
        """What the job printed, in all calls."""
        return self.folder / "log.txt"

    def look(self) -> bool:
        """Whether it is over; says then how it ended."""
        if self.process is not None and self.state == "running":
            code = self.process.poll()
            self.seconds = time.monotonic() - self.start
            if code is not None:
                cut = code == 0 and "time is up" in self.last_words
                self.end("cut" if cut else "done" if code == 0 else f"failed ({code})")
        return self.state != "running"

    def end(self, state: str) -> None:
        """Note how it ended, for this call and later ones."""
        self.state = state
        (self.folder / "state").write_text(state)

    @property
    def last_words(self) -> str:
        """The last three lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return " | ".join(line.strip() for line in lines[-3:])


def script(job: Job, folder: Path, seconds: float, tiny: bool) -> str:
    """The lines of a job as one script of bash; every line runs, whatever the others do."""
    left = max(0.0, seconds - GRACE)
    words = {"python": sys.executable, "folder": folder, "rows": folder / "rows.jsonl"}
    words |= {"seconds": f"{left:.0f}", "minutes": f"{left / 60:.3f}"}
    found = []
    for line in job.lines:
        whole, _, added = line.partition(":: ")
        if whole or not tiny:
            line = f"{whole} {added}" if tiny else whole or added
            found.append(f"{line.strip().format(**words)} || failed=1")
    return "\n".join([*found, "exit ${failed:-0}"])


def start(job: Job, work: Path, seconds: float, given: argparse.Namespace) -> Running:
    """Start a job in a process group of its own; one whose data did not arrive is left out."""
    folder = work / job.name
    folder.mkdir(parents=True, exist_ok=True)
    running = Running(job, folder)
    if absent := [name for name in job.needs if not Path(name).exists()]:
        running.end(f"left out: no {', '.join(absent)}")
        return running
    paths = ["src", ".", str(SITE)]
    more = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "2"}
    more["CUDA_MPS_CLIENT_PRIORITY"] = str(int(job.low))
    text = script(job, folder, seconds, given.tiny)
    with running.log.open("ab") as log:
        log.write(f"$ {text}\n".encode())
        log.flush()
        running.process = subprocess.Popen(
            ["bash", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | more,
            start_new_session=True,
        )
    return running


def finish(running: Sequence[Running], deadline: float, copy: Copies) -> None:
    """Wait for the jobs; those that run at the deadline are ended."""
    while (late := [one for one in running if not one.look()]) and time.monotonic() < deadline:
        copy.when_due()
        time.sleep(LOOK)
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for one in late:
            _tell_group(one, kind)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(one.process.poll() is None for one in late):
            time.sleep(LOOK / 5)
    for one in late:
        one.end("cut")


def _tell_group(one: Running, kind: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(one.process.pid, kind)


@dataclass
class Copies:
    """What the jobs of this call and of earlier ones wrote, in few files."""

    work: Path
    out: Path
    last: float = 0.0

    def when_due(self) -> None:
        """Copy, unless it was done just now."""
        if time.monotonic() - self.last > COPY:
            self.make()

    def make(self) -> None:
        """Write every file again."""
        self.out.mkdir(parents=True, exist_ok=True)
        texts: dict[str, list[str]] = {}
        reports: dict[str, object] = {}
        logs = []
        for folder in sorted(path for path in self.work.iterdir() if path.name in JOBS):
            rows, log = folder / "rows.jsonl", folder / "log.txt"
            if rows.exists():
                texts.setdefault(JOBS[folder.name].into, []).append(rows.read_text())
            for report in folder.glob("*.json"):
                reports[f"{folder.name}/{report.name}"] = _read(report)
            if log.exists():
                logs.append(f"==== {folder.name}\n{log.read_text(errors='replace')}")
        for name, parts in texts.items():
            (self.out / name).write_text("".join(parts))
        (self.out / "reports.json").write_text(json.dumps(reports))
        (self.out / "logs.txt.xz").write_bytes(lzma.compress("\n".join(logs).encode()))
        self.last = time.monotonic()


def _read(report: Path) -> object:
    try:
        return json.loads(report.read_text())
    except ValueError:  # it is being written
        return None


def unpack() -> None:
    """Lay out the wheels that came along; single modules are copied."""
    for path in sorted(Path(WHEELS).glob("*")):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(SITE)
        elif path.suffix == ".py":
            shutil.copy(path, SITE)


def jobs_of(given: argparse.Namespace, work: Path) -> list[Job]:
    """The jobs of the call, and those of earlier calls that this machine did not finish."""
    call = CALLS[given.call]
    before = [job for number in range(1, given.call) for job in CALLS[number].jobs]
    left = [job for job in before if call.goes_on and job.into and _unfinished(job, work)]
    return [job for job in (*call.jobs, *left) if given.only is None or job.name in given.only]


def _unfinished(job: Job, work: Path) -> bool:
    state = work / job.name / "state"
    return state.exists() and state.read_text() != "done"


def run(given: argparse.Namespace) -> int:
    """One call: what must be alone, then all else, then the table."""
    began = time.monotonic()
    deadline = began + 60 * given.minutes
    work = TINY if given.tiny else WORK
    for folder in (work, SITE):
        folder.mkdir(parents=True, exist_ok=True)
    unpack()
    copy = Copies(work, given.out)
    jobs = jobs_of(given, work)
    all_of_them: list[Running] = []
    for first in (True, False):
        own = [job for job in jobs if job.first is first]
        if own and not first:
            share_the_gpu()
        end = began + ALONE * 60 * given.minutes if first else deadline
        running = [start(job, work, end - time.monotonic(), given) for job in own]
        finish(running, end, copy)
        all_of_them += running
    stop_sharing()
    copy.make()
    report(all_of_them, given.out, time.monotonic() - began)
    return 0


def share_the_gpu() -> None:
    """Start MPS where it is installed; every job from here on uses it."""
    if shutil.which("nvidia-cuda-mps-control"):
        folder = tempfile.mkdtemp(prefix="mps-")
        os.environ |= {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)


def stop_sharing() -> None:
    """End the MPS that this call started."""
    if "CUDA_MPS_PIPE_DIRECTORY" in os.environ and shutil.which("nvidia-cuda-mps-control"):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", check=False, timeout=10)


def report(running: Sequence[Running], out: Path, seconds: float) -> None:
    """Print the table of the jobs, and the ends of the logs of those that failed."""
    lines = [f"{'job':16} {'state':12} {'rows':>5} {'seconds':>7}  last words"]
    for one in running:
        rows = one.folder / "rows.jsonl"
        count = len(rows.read_text().splitlines()) if rows.exists() else 0
        head = f"{one.job.name:16} {one.state:12} {count:5} {one.seconds:7.0f}"
        lines.append(f"{head}  {one.last_words[-150:]}")
    for one in running:
        if one.state.startswith("failed"):
            tail = one.log.read_text(errors="replace").splitlines()[-12:]
            lines += [f"---- {one.job.name}", *(line[:200] for line in tail)]
    lines.append(f"{seconds:.0f} s in all")
    (out / "table.txt").write_text("\n".join(lines) + "\n")
    files = sorted(out.iterdir())
    for path in files:
        size = path.stat().st_size
        lines.append(f"{path.name}: {size:,} bytes" + " TOO LARGE" * (size >= MOST_BYTES))
    print("\n".join(lines + ["TOO MANY FILES"] * (len(files) > MOST_FILES)), flush=True)


def main() -> int:
    """Prepare, tell or run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--call", type=int, choices=list(CALLS), help="which call")
    parser.add_argument("--list", action="store_true", help="say what a call does")
    parser.add_argument("--prepare", action="store_true", help="make what the calls carry")
    parser.add_argument("--sets", type=Path, default=Path("../shared/data"), help="holds get.py")
    parser.add_argument("--out", type=Path, help="where the results go")
    parser.add_argument("--minutes", type=float, help="default: as planned")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of jobs")
    parser.add_argument("--tiny", action="store_true", help="shortened jobs on a CPU")
    given = parser.parse_args()
    if given.prepare:
        return prepare(given.sets)
    if given.call is None or (given.out is None and not given.list):
        parser.error("expected --prepare, or --call N with --list or --out FOLDER")
    given.minutes = given.minutes or CALLS[given.call].minutes
    return tell(given.call) if given.list else run(given)


if __name__ == "__main__":
    sys.exit(main())
