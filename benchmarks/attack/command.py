"""The command line of an attack: how long, from which seed, and an exit code that tells."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

#: An attack from a seed for some minutes; its figures have "faults".
Attack = Callable[[int, float], dict[str, Any]]


def command_line(attack: Attack, description: str | None) -> None:
    """Attack until the time is up and print the figures; the exit code is 1 after a fault."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    found = attack(chosen.seed, chosen.minutes)
    print(json.dumps(found, indent=1))
    raise SystemExit(1 if found["faults"] else 0)
