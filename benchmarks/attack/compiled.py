"""Attack the compiled code: a damaged or foreign cache, broken compilers, two processes at once.

Run ``python -m benchmarks.attack.compiled --minutes 1``. After each harm a new process loads a
small library and calls it. It must calculate what the source says, or report that there is none
where no compiler works. The exit code is 1 if it calculates anything else, or ends in another way.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.attack.command import command_line

#: Seconds that a process may take before it counts as a hang.
PATIENCE = 60.0

SOURCE = "long triple(long x) { return 3 * x; }\n"
FOREIGN = "long triple(long x) { return 4 * x; }\n"

#: Loads the library as a new process does, and says what it calculates.
PROGRAM = (
    "import sys; from pathlib import Path; from headwise import native;"
    "found = native.library(Path(sys.argv[1]));"
    "print(None if found is None else found.triple(5))"
)

#: Compilers that do something else than compile.
LIARS = (
    "exit 0",
    "exit 1",
    "kill -9 $$",
    'while [ "$1" != -o ]; do shift; done; echo nonsense > "$2"',
    'while [ "$1" != -o ]; do shift; done; cp "$FOREIGN" "$2"',
)


@dataclass(frozen=True)
class Place:
    """A folder with a source, a foreign library, and a cache of its own."""

    folder: Path
    dice: random.Random

    @property
    def cache(self) -> Path:
        """Where headwise keeps its libraries."""
        return self.folder / "cache" / "headwise"

    @property
    def library(self) -> Path:
        """The compiled library."""
        (found,) = self.cache.glob("*.so")
        return found

    def prepare(self) -> None:
        """Write the source and compile the foreign library; fill the cache."""
        (self.folder / "triple.c").write_text(SOURCE)
        (self.folder / "foreign.c").write_text(FOREIGN)
        command = ["cc", "-shared", "-fPIC", "foreign.c", "-o", "foreign.so"]
        subprocess.run(command, cwd=self.folder, check=True)
        if self.said(self.start()) != "15":
            raise RuntimeError("the library does not work before it is harmed")

    def start(self, path: str | None = None) -> subprocess.Popen[str]:
        """Start a process that loads the library; ``path`` is where it looks for compilers."""
        own = {"XDG_CACHE_HOME": str(self.cache.parent), "FOREIGN": str(self.folder / "foreign.so")}
        own |= {} if path is None else {"PATH": path}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.folder / "triple.c")],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def said(self, process: subprocess.Popen[str]) -> str:
        """What a process printed, or how else it ended."""
        try:
            out, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return "a hang"
        return out.strip() if process.returncode == 0 else f"{process.returncode}: {errors[-300:]}"

    def damage(self) -> None:
        """Cut the library, change some of its bytes, or put nothing in its place."""
        content = bytearray(self.library.read_bytes())
        for _ in range(self.dice.randint(1, 20)):
            content[self.dice.randrange(len(content))] ^= self.dice.randrange(1, 256)
        cut = content[: self.dice.randrange(len(content))]
        self.library.write_bytes(self.dice.choice([bytes(content), bytes(cut), b""]))

    def replace(self) -> None:
        """Put the foreign library in its place, at times with a checksum that fits."""
        foreign = (self.folder / "foreign.so").read_bytes()
        self.library.write_bytes(foreign)
        if self.dice.random() < 0.5:
            fitting = hashlib.blake2b(foreign).hexdigest()
            self.library.with_suffix(".sum").write_text(fitting)

    def expose(self) -> None:
        """Let others write to the library or its folder, or give the library to somebody else."""
        path = self.dice.choice([self.library, self.library.with_suffix(".sum"), self.cache])
        if os.getuid() == 0 and self.dice.random() < 0.5:
            os.chown(path, 65534, 65534)
        else:
            path.chmod(0o777)
        if path != self.cache:
            self.replace()

    def link(self) -> None:
        """Let the name of the library point elsewhere."""
        target = self.folder / self.dice.choice(["foreign.so", "nowhere"])
        path = self.library
        path.unlink()
        path.symlink_to(target)

    def clear(self) -> None:
        """Empty the cache, or forget the checksum."""
        if self.dice.random() < 0.5:
            shutil.rmtree(self.cache)
        else:
            self.library.with_suffix(".sum").unlink()


#: What is done to the cache before a library is loaded.
HARMS: dict[str, Callable[[Place], None]] = {
    harm.__name__: harm
    for harm in (Place.damage, Place.replace, Place.expose, Place.link, Place.clear)
}


def cached(place: Place, harm: str) -> str | None:
    """Harm the cache, then load from one process or several at once."""
    HARMS[harm](place)
    processes = [place.start() for _ in range(place.dice.choice((1, 1, 2, 4)))]
    said = [place.said(process) for process in processes]
    return None if set(said) == {"15"} else f"{harm}: {said}"


def compiler(place: Place) -> str | None:
    """Let a broken compiler stand first, or none; what is cached for the real one is not used."""
    folder = place.folder / "compilers"
    folder.mkdir()
    if place.dice.random() < 0.8:
        liar = folder / "cc"
        liar.write_text(f"#!/bin/sh\n{place.dice.choice(LIARS)}\n")
        liar.chmod(0o755)
        for tool in ("sh", "cp", "echo", "kill"):
            found = shutil.which(tool)
            if found:
                (folder / tool).symlink_to(found)
    said = place.said(place.start(str(folder)))
    return None if said == "None" else f"compiler: {said}"


def play(seed: int) -> tuple[str, str | None]:
    """One round: what was harmed, and what went wrong."""
    dice = random.Random(seed)
    harm = dice.choice([*HARMS, "compiler"])
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), dice)
        place.prepare()
        return harm, compiler(place) if harm == "compiler" else cached(place, harm)


def attack(seed: int, minutes: float, fewest: int = 6) -> dict[str, Any]:
    """Attack until the time is up; return the figures."""
    deadline, played, faults = time.monotonic() + 60 * minutes, Counter[str](), []
    while time.monotonic() < deadline or sum(played.values()) < fewest:
        number = seed + sum(played.values())
        harm, fault = play(number)
        played[harm] += 1
        if fault:
            faults.append({"seed": number, "fault": fault})
            print(json.dumps(faults[-1]), flush=True)
    return {"rounds": dict(played), "faults": len(faults), "seed": seed}


if __name__ == "__main__":
    command_line(attack, __doc__)
