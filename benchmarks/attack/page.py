"""Attack the page: hosts, origins, sizes, slow clients, odd requests, and very many of them.

Run ``python -m benchmarks.attack.page --minutes 1``. The server runs in this process, on the
loopback interface. A fault is a status of 500 or more, a traceback in the server's log, a refusal
that was due and did not come, a page that does not answer within ``PATIENCE`` while others are
slow, or more than a gigabyte of memory. The exit code is 1 if there is any.
"""

from __future__ import annotations

import http.client
import json
import logging
import random
import resource
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.attack.command import command_line

#: Seconds that an answer may take, also while other clients are slow.
PATIENCE = 20.0

#: Bytes that the server may take beyond what it had at the start.
ROOM = 2**30

#: What a browser on the page itself sends.
OWN = {"x-headwise": "1"}

VALUES = (
    *("", "0", "1", "-1", "7", "64", "1e9", "1e400", "nan", "-0", "9" * 40, "9" * 5000, "0x10"),
    *("none", "causal", "../../etc/passwd", "%00", "\u00e9", "<script>", "'; DROP TABLE x; --"),
    *("[]", "{}", "null", "true", "a" * 3000, "\ud83d\ude00", "a/b", "a\r\nset-cookie: x=1"),
)
FIELDS = ("length", "width", "head_dim", "mask", "fraction", "seed", "error", "params", "scale")
PATHS = (
    *("/", "/ask", "/law", "/bounds", "/models", "/exhibits", "/plotly.js", "/static/style.css"),
    *("/api/law", "/api/head", "/api/bounds", "/api/jobs", "/api/exhibits", "/api/models"),
    *(
        "/api/jobs/x/events",
        "/api/jobs/x/cancel",
        "/api/models/x",
        "/api/runs",
        "/api/runs/forget",
        "/api/exhibits/a/b",
    ),
    *(
        "/api/exhibits/a/b/rows.csv",
        "/api/exhibits/a/b/run",
        "/api/ask",
        "/api/ask/x",
        "/api/models/x/picture",
    ),
    *("/static/../app.py", "/static/%2e%2e/app.py", "//", "/api", "/docs", "/openapi.json"),
)


@dataclass
class Log(logging.Handler):
    """What the server logs as an error."""

    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take errors only."""
        super().__init__(logging.ERROR)

    def __hash__(self) -> int:
        """Handlers are kept in sets."""
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message and its exception."""
        self.lines.append(logging.Formatter().format(record)[-1500:])


@dataclass
class Page:
    """A running page, and what was seen of it."""

    port: int
    log: Log
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        """The Host header that it accepts."""
        return f"127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> int:
        """Send one request; return its status, or 0 if the connection was closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"host": self.host, "content-length": str(len(body)), **(headers or {})}
            for name, value in given.items():
                connection.putheader(name, value.encode("utf-8", "replace"))
            connection.endheaders(body)
            answer = connection.getresponse()
            answer.read()
        except TimeoutError:
            self.faults.append(f"{method} {path[:200]}: no answer within {PATIENCE:.0f} s")
            return 0
        except (OSError, http.client.HTTPException, ValueError):
            return 0
        finally:
            connection.close()
        self.statuses[answer.status] += 1
        if answer.status >= 500 and answer.status != 503:
            self.faults.append(f"{method} {path[:200]}: status {answer.status}: {body[:200]!r}")
        return answer.status

    def end_jobs(self) -> None:
        """Cancel all work and wait for its end: a thread in torch's code outlives no process."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            connection.request("GET", "/api/jobs")
            jobs = json.loads(connection.getresponse().read())
            connection.close()
            left = [job["key"] for job in jobs if job["state"] in ("waiting", "running")]
            if not left:
                return
            for key in left:
                self.ask("POST", f"/api/jobs/{key}/cancel", OWN)
            time.sleep(0.2)

    def expect(self, wanted: int, what: str, *request: Any, **more: Any) -> None:
        """Ask, and call another status a fault; a closed connection refuses too."""
        found = self.ask(*request, **more)
        if found not in (wanted, 0):
            self.faults.append(f"{what}: expected {wanted}, got {found}")


@contextmanager
def running() -> Iterator[Page]:
    """Serve the page from a thread of this process."""
    import uvicorn

    from headwise.web.app import create_app
    from headwise.web.server import hosts_of

    with tempfile.TemporaryDirectory() as folder, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        app = create_app(Path(folder) / "results.db", hosts_of("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        log = Log()
        logging.getLogger("uvicorn.error").addHandler(log)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        page = Page(port, log)
        try:
            yield page
        finally:
            page.end_jobs()
            server.should_exit = True
            thread.join(PATIENCE)


def foreign(page: Page, dice: random.Random) -> None:
    """Requests that a page of another site, or another name for this machine, would send."""
    names = ("evil.example", "127.0.0.1", f"127.0.0.1:{page.port + 1}", "", f"{page.host}.evil.io")
    host = dice.choice(names)
    path = dice.choice(PATHS[:14])
    page.expect(400, f"host {host!r}", "GET", path, {"host": host})
    origin = dice.choice(("http://evil.example", "null", f"http://{page.host}.evil.io", "https://"))
    page.expect(403, f"origin {origin!r}", "POST", "/api/ask", {"origin": origin, **OWN})
    page.expect(403, "no header of the page", "POST", "/api/ask", {"origin": f"http://{page.host}"})


def odd(page: Page, dice: random.Random) -> None:
    """A request with odd values in its address, its headers and its body."""
    method = dice.choice(("GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "X"))
    path = dice.choice(PATHS)
    words = [f"{dice.choice(FIELDS)}={_quoted(dice)}" for _ in range(dice.randrange(4))]
    given = {
        dice.choice(FIELDS): dice.choice((*VALUES, 3, -1, 1e308, None, [1], {})) for _ in "abc"
    }
    kind, body = dice.choice(_bodies(given, dice))
    headers = {**OWN, "content-type": kind, "origin": f"http://{page.host}"}
    if dice.random() < 0.2:
        headers["cookie"] = "headwise_token=" + _quoted(dice)
    page.ask(method, path + ("?" + "&".join(words) if words else ""), headers, body)


def _quoted(dice: random.Random) -> str:
    from urllib.parse import quote

    value = dice.choice(VALUES)
    return quote(value, safe="", errors="surrogatepass") if dice.random() < 0.9 else "%ff%"


def _bodies(given: dict[str, Any], dice: random.Random) -> list[tuple[str, bytes]]:
    text = json.dumps(given).encode()
    form = b'--b\r\ncontent-disposition: form-data; name="given"\r\n\r\n%s\r\n'
    file = b'--b\r\ncontent-disposition: form-data; name="files"; filename="a.npy"\r\n\r\n%s\r\n'
    multipart = "multipart/form-data; boundary=b"
    return [
        ("application/json", text),
        ("application/json", text[: dice.randrange(len(text))]),
        ("application/json", b"[" * 5000),
        (multipart, form % b"{" + b"--b--\r\n"),
        (multipart, form % b'"text"' + file % dice.randbytes(40) + b"--b--\r\n"),
        (multipart, file % dice.randbytes(40)),
        ("multipart/form-data", text),
        (multipart, dice.randbytes(60)),
        ("text/plain", dice.randbytes(60)),
    ]


def too_large(page: Page, dice: random.Random) -> None:
    """Bodies, addresses and headers beyond every limit, announced or not."""
    page.expect(
        413, "a body of a terabyte", "POST", "/api/ask", {**OWN, "content-length": "9" * 13}
    )
    page.ask("GET", "/ask?" + "a" * dice.choice((60_000, 300_000)))
    page.ask("GET", "/ask", {f"x-{number}": "a" * 100 for number in range(900)})
    with suppress(OSError), socket.create_connection(("127.0.0.1", page.port), PATIENCE) as raw:
        start = f"POST /api/ask HTTP/1.1\r\nhost: {page.host}\r\nx-headwise: 1\r\n"
        start += "content-type: multipart/form-data; boundary=b\r\ntransfer-encoding: chunked\r\n"
        part = _bodies({}, dice)[5][1].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        raw.sendall(start.encode() + b"\r\n%x\r\n%s\r\n" % (len(part), part))
        for _ in range(80):  # 80 MiB, which nothing announced
            raw.sendall(b"100000\r\n" + bytes(2**20) + b"\r\n")
        if _status(raw) < 400:
            page.faults.append("a body of 80 MiB without length was taken")


def _status(raw: socket.socket) -> int:
    words = raw.recv(200).split()
    return int(words[1]) if len(words) > 1 else 413


def slow(page: Page, dice: random.Random) -> None:
    """Many clients that never finish their request, while another asks for the page."""
    waiting = []
    for _ in range(dice.choice((40, 150))):
        client = socket.create_connection(("127.0.0.1", page.port), PATIENCE)
        with suppress(OSError):
            client.sendall(b"POST /api/ask HTTP/1.1\r\nhost: " + dice.choice((b"", b"a\r\nx: ")))
        waiting.append(client)
    try:
        page.expect(200, "the page beside slow clients", "GET", "/ask")
    finally:
        for client in waiting:
            client.close()


def flood(page: Page, dice: random.Random) -> None:
    """Hundreds of requests at once."""
    path = dice.choice(("/ask", "/api/jobs", "/law", "/static/style.css"))
    with ThreadPoolExecutor(24) as pool:
        found = Counter(pool.map(lambda _: page.ask("GET", path), range(300)))
    if set(found) - {200, 404, 503}:
        page.faults.append(f"a flood of {path}: {dict(found)}")


ATTACKS = (odd,) * 60 + (foreign,) * 10 + (slow, flood, too_large)

#: A run of this many has every kind in it.
SHORT = len(ATTACKS)


def attack(seed: int, minutes: float, most: int = 10**9) -> dict[str, object]:
    """Attack until the time is up; return the figures."""
    deadline, number, kinds = time.monotonic() + 60 * minutes, seed, Counter[str]()
    before = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with running() as page:
        while time.monotonic() < deadline and number < seed + most:
            dice = random.Random(number)
            one = ATTACKS[number % len(ATTACKS)]
            faults = len(page.faults)
            one(page, dice)
            kinds[one.__name__] += 1
            for fault in page.faults[faults:]:
                print(json.dumps({"seed": number, "fault": fault}), flush=True)
            number += 1
        page.expect(200, "the page at the end", "GET", "/ask")
    page.faults += page.log.lines
    taken = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if taken > ROOM:
        page.faults.append(f"{taken / 2**20:.0f} MiB were taken")
    return {
        "requests": sum(page.statuses.values()),
        "attacks": dict(kinds),
        "by status": dict(sorted(page.statuses.items())),
        "MiB taken": taken // 2**20,
        "faults": len(page.faults),
        "what": page.faults[:20],
        "seed": seed,
    }


if __name__ == "__main__":
    command_line(attack, __doc__)
