"""Train language models and recall tasks over head geometries; one row for each run and length.

    python -m benchmarks.advice.language --list
    python -m benchmarks.advice.language --device cuda --minutes 9 --rows rows.jsonl

Jobs run in order of worth (``benchmarks.advice.language_jobs``). Rows are written as soon as a
length of training is over, and what is in the rows file is not trained again. With --minutes the
script stops in time and keeps a checkpoint; the next call goes on from it. Token files come from
``benchmarks.advice.corpora``. Needs torch and numpy alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from benchmarks.advice import language_tasks
from benchmarks.advice.language_device import accelerate, milliseconds, resume, save
from benchmarks.advice.language_jobs import JOBS, Job
from benchmarks.advice.language_model import Member
from benchmarks.advice.language_training import Ended, Ensemble, Progress, run
from benchmarks.recording import Row, provenance, read_rows, told

Key = tuple[str, int, int, int, int, float, int]

#: Seconds before the end after which no job begins.
NOT_WORTH_STARTING = 30.0

#: Estimated seconds below which compiling a job takes longer than it saves.
WORTH_COMPILING = 50.0

#: Tokens of a step, and tokens that validate, in a trial.
TINY_TOKENS = 512

SCHEDULE = "constant after 100 steps of warm-up, linear decay over the last fifth"


def key_of(row: Row) -> Key:
    """What tells runs apart: task, geometry, seed, rate and length of training."""
    geometry = (row["heads"], row["qk_rank"], row["v_rank"])
    return (row["task"], *geometry, row["seed"], row["rate"], row["steps"])


def keys_of(job: Job, member: Member) -> list[Key]:
    """The rows that a member of a job is to give."""
    head = (job.task.name, *member.geometry, member.seed, member.rate)
    return [(*head, length) for length in job.lengths]


@dataclass
class Session:
    """One call of the script: its options, its clock, and what is known."""

    given: argparse.Namespace
    known: set[Key]
    start: float
    saved: float
    compiled: bool | None = None

    @property
    def spent(self) -> float:
        """Seconds since the call."""
        return time.monotonic() - self.start

    def train(self, job: Job) -> bool:
        """Train what is left of a job; False if time ran out."""
        members = [
            member
            for member in job.members(self.given.seeds)
            if any(key not in self.known for key in keys_of(job, member))
        ]
        if not members:
            return True
        print(f"{self.spent:.0f} s {job.name}: {len(members)} members", flush=True)
        ensemble = Ensemble(job.task.load(self.given.data, self.given.device), members)
        identity = f"{job.name} {job.lengths} {members}"
        path = self.given.checkpoints / f"{_short(identity)}.pt"
        if ensemble.on_gpu:
            short = job.estimated_seconds(self.given.seeds) < WORTH_COMPILING
            self._accelerate(ensemble, (False,) if short else (False, True))
        progress = resume(path, identity, ensemble)
        begun = progress.step

        def sink(ended: Ended, at: Progress) -> None:
            self._write(job, ensemble, ended, at)

        def tick(at: Progress) -> bool:
            now = time.monotonic()
            if self.spent > 60 * self.given.minutes:
                save(path, identity, ensemble, at)
                print(f"time is up at step {at.step}; call again to go on", flush=True)
                return False
            if now - self.saved > self.given.save_seconds and at.step > begun:
                save(path, identity, ensemble, at)
                self.saved = now
            return True

        complete = run(ensemble, job.lengths, progress, sink=sink, tick=tick)
        if complete:
            path.unlink(missing_ok=True)
        return complete

    def _accelerate(self, ensemble: Ensemble, ways: tuple[bool, ...]) -> None:
        """Take the faster of plain and compiled layers; print what fails and skip it."""
        found: dict[bool, float] = {}
        wanted = (self.compiled,) if self.compiled in ways else ways
        for compiled in wanted:
            try:
                if compiled:
                    torch._dynamo.reset()
                accelerate(ensemble, compiled)
                found[compiled] = milliseconds(ensemble)
            except Exception:
                print(f"compiled={compiled} failed\n{traceback.format_exc()}", flush=True)
        tokens = ensemble.held.ids.numel() if ensemble.held is not None else 0
        for compiled, each in found.items():
            speed = tokens / each / 1e3
            print(f"  compiled={compiled}: {each:.1f} ms a step, {speed:.1f}M tokens/s", flush=True)
        if not found:
            ensemble.update = ensemble.plain_update
            return
        best = min(found, key=lambda compiled: found[compiled])
        if best != wanted[-1] or len(found) < len(wanted):
            accelerate(ensemble, best)
        if len(ways) > 1:
            self.compiled = best

    def _write(self, job: Job, ensemble: Ensemble, ended: Ended, at: Progress) -> None:
        rows = [
            self._row(job, ensemble, ended, at, number) for number in range(len(ensemble.members))
        ]
        fresh = [row for row in rows if key_of(row) not in self.known]
        self.known.update(key_of(row) for row in fresh)
        self.given.rows.parent.mkdir(parents=True, exist_ok=True)
        with self.given.rows.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in fresh)
        print(f"{self.spent:.0f} s {job.name}, {ended.length} steps", flush=True)
        print(summary(rows), flush=True)

    def _row(self, job: Job, ensemble: Ensemble, ended: Ended, at: Progress, number: int) -> Row:
        task, member = job.task, ensemble.members[number]
        shape, geometry = task.shape, member.geometry
        tokens = task.sequences * shape.length
        return {
            "task": task.name,
            "kind": task.kind,
            "held_out": task.held_out,
            "measure": "nats",
            "width": shape.width,
            "depth": shape.layers,
            "length": shape.length,
            "heads": geometry.heads,
            "qk_rank": geometry.qk_rank,
            "v_rank": geometry.v_rank,
            "attention_parameters": shape.attention_parameters(geometry),
            "model_parameters": shape.parameters(geometry),
            "rate": member.rate,
            "steps": ended.length,
            "schedule": SCHEDULE,
            "batch": task.sequences,
            "score": _number(ended.losses[number]),
            "accuracy": ended.accuracies[number],
            "train_loss": _number(ended.train_losses[number]),
            "curve": [[step, _number(losses[number])] for step, losses in ended.curve],
            "members": len(ensemble.members),
            "tokens_per_second": round(tokens * at.updates * len(ensemble.members) / at.seconds),
            **provenance(self.given.device.split(":")[0], self._dtype(ensemble), member.seed),
            "command": " ".join(["python -m benchmarks.advice.language", *map(told, sys.argv[1:])]),
        }

    def _dtype(self, ensemble: Ensemble) -> str:
        return "bfloat16, weights float32" if ensemble.on_gpu else "float32"


def _number(value: float) -> float | None:
    return round(value, 5) if value == value else None


def _short(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def summary(rows: Sequence[Row]) -> str:
    """The mean loss of each geometry and rate, one line each."""
    grouped: dict[tuple[int, int, int, float], list[Row]] = {}
    for row in rows:
        name = (row["heads"], row["qk_rank"], row["v_rank"], row["rate"])
        grouped.setdefault(name, []).append(row)
    lines = []
    for (heads, qk_rank, v_rank, rate), own in grouped.items():
        scores = [row["score"] for row in own]
        each = " ".join("nan" if score is None else f"{score:.4f}" for score in scores)
        accuracy = sum(row["accuracy"] for row in own) / len(own)
        lines.append(
            f"  {heads} x {qk_rank}/{v_rank} at {rate:g}: {each} (accuracy {accuracy:.3f})"
        )
    return "\n".join(lines)


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", help="names by commas, or parts of names; default: all")
    parser.add_argument("--list", action="store_true", help="print the jobs and estimated times")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seeds", default="0,1,2", help="by commas")
    parser.add_argument("--lengths", help="steps by commas, instead of those of each job")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop in time")
    parser.add_argument("--data", type=Path, default=Path("local/language"))
    parser.add_argument("--rows", type=Path, help="rows are appended here")
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="rows not to train again")
    parser.add_argument("--checkpoints", type=Path, default=Path("local/language-checkpoints"))
    parser.add_argument("--save-seconds", type=float, default=900.0)
    parser.add_argument("--tiny", action="store_true", help="few tokens a step, for a trial")
    parser.add_argument("--compile", choices=["yes", "no", "faster"], default="faster")
    given = parser.parse_args(words)
    given.seeds = tuple(int(seed) for seed in given.seeds.split(","))
    if not given.list and given.rows is None:
        parser.error("expected --rows FILE, got none")
    return given


def chosen(given: argparse.Namespace) -> list[Job]:
    """The jobs whose names hold a wanted part, in the order of the parts, or all by worth."""
    parts = given.jobs.split(",") if given.jobs else [""]
    names = dict.fromkeys(name for part in parts for name in JOBS if part in name)
    found = [JOBS[name] for name in names]
    if given.lengths:
        lengths = tuple(int(length) for length in given.lengths.split(","))
        found = [replace(job, lengths=lengths) for job in found]
    return found


def main(words: list[str]) -> int:
    """Train job after job; print one that fails and skip it."""
    given = arguments(words)
    jobs = chosen(given)
    if given.list:
        for job in jobs:
            held = " (held out)" if job.task.held_out else ""
            members = len(job.members(given.seeds))
            seconds = job.estimated_seconds(given.seeds)
            print(f"{job.name}{held}: {members} members, {job.steps} steps, ~{seconds:.0f} s")
        return 0
    if given.tiny:
        language_tasks.STEP_TOKENS = language_tasks.VALIDATION_TOKENS = TINY_TOKENS
    now = time.monotonic()
    known = {key_of(row) for row in read_rows([given.rows, *given.known])}
    compiled = {"yes": True, "no": False, "faster": None}[given.compile]
    session, failed = Session(given, known, now, now, compiled), 0
    if given.device.startswith("cuda"):
        torch.backends.cuda.enable_cudnn_sdp(False)  # plans each new shape for seconds
    for job in jobs:
        if session.spent > 60 * given.minutes - NOT_WORTH_STARTING:
            print(f"time is up before {job.name}", flush=True)
            break
        try:
            if not session.train(job):
                break
        except Exception:
            failed += 1
            print(f"{job.name} failed\n{traceback.format_exc()}", flush=True)
        if given.device.startswith("cuda"):
            torch.cuda.empty_cache()
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
