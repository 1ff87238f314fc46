"""A driver as a separate process, to be killed: drive.py EXECUTOR STORE TRACE COUNT SLOW."""

from __future__ import annotations

import signal
import sys

from headwise.errors import HeadwiseError
from headwise.runs import ClusterExecutor, LocalExecutor, Store, run
from runs.questions import Slow


def main(executor: str, location: str, trace: str, count: str, slow_from: str) -> int:
    """Specs from number ``slow_from`` on take a minute."""
    # A background job inherits an ignored SIGINT, and then Python leaves Ctrl-C alone.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    specs = [
        Slow(number=number, seconds=60 if number >= int(slow_from) else 0.1, trace=trace)
        for number in range(int(count))
    ]
    workers = {"local": LocalExecutor(workers=2), "cluster": ClusterExecutor("local:2")}
    try:
        with Store.open(location) as store:
            print(run(store.plan(specs), workers[executor], store))
    except HeadwiseError as error:
        print(error, file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
