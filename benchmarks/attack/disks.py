"""Attack stores and checkpoints with full disks, lost permissions, wrong clocks and damage.

Run ``python -m benchmarks.attack.disks --minutes 1``. Each round stores a few answers, makes one
kind of trouble, runs on, ends the trouble, and runs to the end. Each error must be one of
headwise's, in one line. What was stored before and during the trouble must be there, byte for byte,
and the end must be complete. Damage may be refused; a damaged checkpoint that is not refused must
lead to the same numbers. The exit code is 1 otherwise.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
from benchmarks.attack.command import command_line
from benchmarks.attack.mutations import damaged
from benchmarks.attack.stored import differences
from benchmarks.attack.sums import Sums, specs

from headwise.errors import HeadwiseError
from headwise.runs import Outcome, Spec, Store, run
from headwise.runs.attempt import attempt

#: Specs of one round.
SPECS = 12

#: An account without rights, for rounds that run as root.
NOBODY = 65534


class Here:
    """An executor that computes in this process."""

    def outcomes(self, specs: Sequence[Spec], started: Callable[[Spec], None]) -> Iterator[Outcome]:
        """Yield one outcome per spec."""
        for spec in specs:
            started(spec)
            yield attempt(spec)

    def close(self) -> None:
        """Do nothing."""


class FaultError(Exception):
    """Something that must not happen."""


def filled(path: Path, wanted: Sequence[Sums]) -> str | None:
    """Run what is missing in a store; return the refusal, if there is one."""
    try:
        with Store.open(path) as store:
            run(store.plan(wanted).retrying(), Here(), store)
    except HeadwiseError as error:
        if "\n" in str(error):
            raise FaultError(f"a message of several lines: {error}") from None
        return str(error)
    return None


@contextmanager
def full_disk(path: Path, dice: random.Random) -> Iterator[None]:
    """No file may become longer than a random length."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    longest = max((file.stat().st_size for file in path.parent.iterdir()), default=0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (dice.randrange(longest + 60_000), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def full_volume(path: Path, dice: random.Random) -> Iterator[None]:
    """The folder is a small disk of its own, nearly full; only root can make one."""
    folder = path.parent
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], check=True)
    try:
        for name, content in before.items():
            (folder / name).write_bytes(content)
        free = shutil.disk_usage(folder).free
        (folder / "other").write_bytes(bytes(dice.randrange(free // 2, free)))
        yield
        (folder / "other").unlink()
        after = {file.name: file.read_bytes() for file in folder.iterdir()}
    finally:
        subprocess.run(["umount", folder], check=True)
    for file in folder.iterdir():
        file.unlink()
    for name, content in after.items():
        (folder / name).write_bytes(content)


@contextmanager
def read_only(path: Path, dice: random.Random) -> Iterator[None]:
    """Files or folders lose their write permission, and root becomes nobody."""
    folder, root = path.parent, os.geteuid() == 0
    places = [folder, *folder.iterdir()]
    before = {place: place.stat().st_mode for place in places}
    for place in places:
        mode = 0o755 if place == folder else 0o644
        place.chmod(mode & ~0o222 if dice.random() < 0.6 else mode | 0o222)
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for place, mode in before.items():
            if place.exists():
                place.chmod(mode)


@contextmanager
def wrong_clock(path: Path, dice: random.Random) -> Iterator[None]:
    """The time of day jumps at each look by up to ten years, and files are from the future."""

    def jumping() -> float:
        return dice.uniform(-3e8, 3e8) + 1.8e9

    for file in path.parent.iterdir():
        os.utime(file, (jumping(), jumping()))
    with mock.patch("time.time", jumping), mock.patch("time.time_ns", lambda: int(1e9 * jumping())):
        yield


TROUBLES = {
    "full disk": full_disk,
    "full volume": full_volume,
    "read-only": read_only,
    "wrong clock": wrong_clock,
}


def troubled_store(kind: str, folder: Path, dice: random.Random, seen: Counter[str]) -> None:
    """One round with a store.

    Raises:
        FaultError: If an answer is lost, or an error is none of ours.
    """
    folder.chmod(0o755)
    path, wanted = folder / "results.db", specs(SPECS, seconds=0.0)
    first = dice.randrange(SPECS) if dice.random() < 0.8 else 0
    if first:
        filled(path, wanted[:first])
    with TROUBLES[kind](path, dice):
        refusal = filled(path, wanted)
    seen[f"{kind}: {'refused' if refusal else 'done'}"] += 1
    if refusal is None and differences(str(path), SPECS, 0.0):
        raise FaultError(f"{kind}: done, but {differences(str(path), SPECS, 0.0)}")
    if path.exists() and differences(str(path), first, 0.0, subset=True):
        raise FaultError(f"{kind}: lost {differences(str(path), first, 0.0, subset=True)}")
    again = filled(path, wanted)
    if again or differences(str(path), SPECS, 0.0):
        raise FaultError(f"{kind}: afterwards {again or differences(str(path), SPECS, 0.0)}")


def damaged_store(folder: Path, dice: random.Random, seen: Counter[str]) -> None:
    """A driver on a store with damaged bytes: it is refused in one line, or goes on."""
    path, wanted = folder / "results.db", specs(SPECS, seconds=0.0)
    filled(path, wanted[:6])
    content, rng = path.read_bytes(), np.random.default_rng(dice.randrange(2**32))
    path.write_bytes(damaged(rng, content, content))
    refusal = filled(path, wanted)
    seen[f"damaged store: {'refused' if refusal else 'done'}"] += 1


@cache
def _training() -> tuple[Callable[[Path], object], bytes, object]:
    """A short run, one of its checkpoints, and its end."""
    from headwise.data import FarthestNeighbour
    from headwise.models import NeighbourShape
    from headwise.training import Fresh, Saving, Settings, train

    task, shape = FarthestNeighbour(4, 3), NeighbourShape(4, 3, rank=1, copies=1, mlp_width=4)
    settings = Settings(steps=3, batch=2, seeds=(0,), evaluation=2, epoch=2, protocol=Fresh())

    def trained(path: Path) -> object:
        found = train(
            {"one": shape.build}, task, settings, saving=Saving(path, "attack", seconds=0)
        )
        return list(found.rows), {k: v.tolist() for k, v in found.parameters.items()}

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        kept: list[bytes] = []
        replace = Path.replace

        def keeping(self: Path, target: Path) -> Path:
            kept.append(self.read_bytes())
            return replace(self, target)

        with mock.patch.object(Path, "replace", keeping):
            end = trained(path)
    return trained, kept[0], end


def damaged_checkpoint(folder: Path, dice: random.Random, seen: Counter[str]) -> None:
    """A run that resumes from a damaged checkpoint is refused, or ends at the same numbers.

    Raises:
        FaultError: If it ends at other numbers.
    """
    trained, content, end = _training()
    path, rng = folder / "run.pt", np.random.default_rng(dice.randrange(2**32))
    path.write_bytes(damaged(rng, content, content))
    try:
        same = trained(path) == end
    except HeadwiseError as error:
        if "\n" in str(error):
            raise FaultError(f"a message of several lines: {error}") from None
        seen["damaged checkpoint: refused"] += 1
    else:
        seen["damaged checkpoint: done"] += 1
        if not same:
            raise FaultError("a damaged checkpoint led to other numbers")


def kinds() -> list[str]:
    """Every kind of trouble that this machine can make."""
    found = [*TROUBLES, "damaged store", "damaged checkpoint"]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        found.remove("full volume")
    return found


def play(number: int, kind: str, seen: Counter[str]) -> str | None:
    """One round; return the fault, if there is one."""
    dice = random.Random(number)
    with tempfile.TemporaryDirectory() as folder:
        try:
            if kind == "damaged store":
                damaged_store(Path(folder), dice, seen)
            elif kind == "damaged checkpoint":
                damaged_checkpoint(Path(folder), dice, seen)
            else:
                troubled_store(kind, Path(folder), dice, seen)
        # Any exception is a finding: it is kept with its seed, and the next round follows.
        except Exception as error:
            return f"{kind}: {type(error).__name__}: {error}"[:600]
    return None


def attack(seed: int, minutes: float, most: int = 10**9) -> dict[str, object]:
    """Play rounds until the time is up; return the figures."""
    deadline, seen, faults, number = time.monotonic() + 60 * minutes, Counter[str](), [], seed
    while time.monotonic() < deadline and number < seed + most:
        kind = kinds()[number % len(kinds())]
        fault = play(number, kind, seen)
        if fault:
            faults.append({"seed": number, "fault": fault})
            print(json.dumps(faults[-1]), flush=True)
        number += 1
    return {
        "rounds": number - seed,
        "outcomes": dict(sorted(seen.items())),
        "faults": len(faults),
        "seed": seed,
    }


if __name__ == "__main__":
    command_line(attack, __doc__)
