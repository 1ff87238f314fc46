"""Specs for the tests: quick, slow, and deadly ones. Workers import them from here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from headwise.runs import Row, Spec, device


class Cube(Spec, frozen=True):
    """Answered at once; has a seed and a dtype."""

    kind: Literal["cube"] = "cube"
    revision: Literal[2] = 2
    number: float
    seed: int = 0
    dtype: str = "float64"
    tags: tuple[str, ...] = ()

    def ask(self) -> Row:
        return {"cube": self.number**3, "device_seen": device(), "pid": os.getpid()}


class Slow(Spec, frozen=True):
    """Takes its time, and leaves a line in a file each time it is asked."""

    kind: Literal["slow"] = "slow"
    revision: Literal[1] = 1
    number: int
    seconds: float
    trace: str

    def ask(self) -> list[Row]:
        with Path(self.trace).open("a") as file:
            file.write(f"{self.number} {os.getpid()}\n")
        time.sleep(self.seconds)
        return [{"double": 2 * self.number}, {"double": 2 * self.number + 1}]


class Poison(Spec, frozen=True):
    """Raises, leaves, kills its worker, answers nonsense, or waits for a victim to share with."""

    kind: Literal["poison"] = "poison"
    revision: Literal[1] = 1
    how: Literal["raises", "exits", "kills", "nonsense", "nan"]

    def ask(self) -> Row:
        if self.how == "raises":
            raise RuntimeError("this spec is poison")
        if self.how == "exits":
            raise SystemExit(3)
        if self.how == "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"value": object() if self.how == "nonsense" else float("nan")}


class Threads(Spec, frozen=True):
    """How many threads does torch have here?"""

    kind: Literal["threads"] = "threads"
    revision: Literal[1] = 1
    number: int = 0

    def ask(self) -> Row:
        import torch

        print("a worker's print must not reach the output of the command")
        return {"threads": torch.get_num_threads()}


Kinds = Annotated[Cube | Slow | Poison, Field(discriminator="kind")]


def asked(trace: Path) -> list[tuple[int, int]]:
    """What Slow specs left: number and process, in the order they were asked."""
    if not trace.exists():
        return []
    lines = [line.split() for line in trace.read_text().splitlines()]
    return [(int(number), int(pid)) for number, pid in lines]
