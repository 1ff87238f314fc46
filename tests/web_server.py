"""headwise serve in a process of its own, for tests in a browser."""

import os
import re
import signal
import subprocess
import sys


class Server:
    """headwise serve in a process of its own."""

    def __init__(self, store, port=0):
        given = ["--port", str(port), "--store", str(store)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headwise", "serve", "--no-browser", *given],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        line = self._process.stdout.readline()
        self.address = re.search(r"http://[^/]+", line).group()
        self.port = int(self.address.rpartition(":")[2])

    def kill(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
