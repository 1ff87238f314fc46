"""headwise serve: the local page."""

from __future__ import annotations

from typing import Annotated

import typer

from headwise.cli.options import option, store_place, whole_from

Port = Annotated[
    int,
    option(
        "--port", "Port to listen on; 0 chooses a free one.", whole_from(0, 65535, such_as="8765")
    ),
]
Host = Annotated[
    str,
    typer.Option("--host", help="Interface to listen on; others than loopback need a token."),
]
Place = Annotated[
    str | None,
    option(
        "--store",
        "Store of scans and exhibits: a path, or postgresql://HOST/DATABASE.",
        store_place,
        metavar="PLACE",
        default="local results",
    ),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]
Token = Annotated[
    str | None,
    typer.Option("--token", help="Token that browsers must send; generated if --host needs one."),
]


def serve(
    port: Port = 8765,
    host: Host = "127.0.0.1",
    store: Place = None,
    no_browser: NoBrowser = False,
    token: Token = None,
) -> None:
    """Open the local page: ask for advice, look at laws, bounds, scans and exhibits."""
    from headwise.web import serve as serve_page

    serve_page(port=port, host=host, store=store, browser=not no_browser, token=token)
