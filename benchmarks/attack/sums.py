"""A driver to be killed, and the specs that it runs: `python -m benchmarks.attack.sums`."""

from __future__ import annotations

import sys
import time
from typing import Literal

from headwise.errors import HeadwiseError
from headwise.runs import ClusterExecutor, LocalExecutor, Row, Spec, Store, run

#: Seconds that a spec takes in rounds of kills.
PAUSE = 0.05


class Sums(Spec, frozen=True):
    """A few rows of numbers that depend on every digit before them."""

    kind: Literal["sums"] = "sums"
    revision: Literal[1] = 1
    number: int
    seconds: float

    def ask(self) -> list[Row]:
        """Return rows that are the same on every machine, after a short while."""
        time.sleep(self.seconds)
        value, rows = 0.1 + self.number, []
        for place in range(3):
            value = (value * 1103515245.0 + 12345.0) % 2147483648.0
            rows.append({"place": place, "value": value / 3.0})
        return rows


def specs(count: int, seconds: float = PAUSE) -> list[Sums]:
    """The specs of one round."""
    return [Sums(number=number, seconds=seconds) for number in range(count)]


def main(executor: str, location: str, count: str) -> int:
    """Answer what is missing in the store, and what failed because its worker was killed."""
    address = "local:2" if executor == "cluster" else executor
    workers = LocalExecutor(workers=2) if executor == "local" else ClusterExecutor(address)
    try:
        with Store.open(location) as store:
            run(store.plan(specs(int(count))).retrying(), workers, store)
    except HeadwiseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
