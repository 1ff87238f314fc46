"""serve: open the page on this machine."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import threading
import webbrowser

from headwise.checks import whole
from headwise.errors import BadInputError, needs_extra

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    store: str | os.PathLike[str] | None = None,
    browser: bool = True,
    token: str | None = None,
) -> None:
    """Serve the local page until it is stopped with Ctrl-C.

    Args:
        port: The port to listen on; 0 chooses a free one.
        host: The interface to listen on. Anything but the loopback interface needs a token; one is
            made and printed if none is given.
        store: Where scans and exhibits are stored; by default the store of the command.
        browser: Whether to open the page in a browser.
        token: What a browser on another machine must present.

    Raises:
        MissingExtraError: If FastAPI, uvicorn or plotly are not installed.
        ParameterError: If the port is out of range.
        BadInputError: If the port is taken.
        StoreError: If the store is there and is none.

    Example:
        >>> serve(port=70_000)
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected `port` from 0 to 65,535, got 70,000; ...
    """
    whole("`port`", port, 0, 65_535)
    if store is not None:
        _refuse_no_database(store)
    try:
        import fastapi  # noqa: F401
        import plotly  # noqa: F401
        import uvicorn
    except ImportError as error:
        missing = needs_extra(error.name or "fastapi", "web")
        raise missing from None
    from headwise.runs import DEFAULT_STORE
    from headwise.web.answers import warm_up
    from headwise.web.app import create_app

    listening = _bound(host, port)
    port = listening.getsockname()[1]
    if host not in LOOPBACK and token is None:
        token = secrets.token_urlsafe(24)
    address = f"http://{host}:{port}/" + (f"?token={token}" if token else "")
    app = create_app(store or DEFAULT_STORE, hosts_of(host, port), token)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    threading.Thread(target=warm_up, name="headwise warm-up", daemon=True).start()
    print(f"headwise is at {address} (Ctrl-C ends it)", flush=True)
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    uvicorn.Server(config).run(sockets=[listening])


def _refuse_no_database(store: str | os.PathLike[str]) -> None:
    """Refuse a file that is no store now, not at the first look at the page."""
    from headwise.papers.computing import store_exists, store_location
    from headwise.runs import Store

    location = store_location(store)
    if store_exists(location):
        with Store.open(location):
            pass


def hosts_of(host: str, port: int) -> list[str]:
    """The Host headers by which a server on this interface is addressed."""
    names = ["127.0.0.1", "localhost", "[::1]"] if host in LOOPBACK else [host]
    if host in ("0.0.0.0", "::"):
        names = ["127.0.0.1", "localhost", socket.gethostname()]
    return [f"{name}:{port}" for name in names]


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(
            256
        )  # who comes as soon as the address is printed waits, and is not refused
    except OSError as error:
        listening.close()
        # Where the port is taken another one helps; all else is about the host.
        wrong = "port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "host"
        raise BadInputError(
            f"cannot listen on {host}:{port} ({error.strerror})", hint=f"pass another `{wrong}`"
        ) from None
    return listening
