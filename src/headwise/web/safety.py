"""Who may ask, and how much: hosts, origins, the token, sizes and headers.

A page on the internet can make this machine's browser send requests to 127.0.0.1. Three checks
refuse them: the Host header must be ours (against DNS rebinding), the Origin of anything that
changes something must be ours, and a request with a body must carry a header that a form on
another site cannot send.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The largest request body: a file of tokens.
MOST_BYTES = 64 * 2**20

#: The header that the page sends with everything that has a body.
PAGE_HEADER = "x-headwise"

#: The cookie that keeps the token after the first request.
COOKIE = "headwise_token"

#: Plotly writes style attributes, so styles may be inline. Scripts may not.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class TooMuchError(Exception):
    """A request body is larger than ``MOST_BYTES``."""


class Guard:
    """Middleware that refuses what the page itself would never send.

    Args:
        app: The application behind it.
        hosts: Host headers that are ours, with the port.
        token: What a client must present once; None on the loopback interface.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str | None = None) -> None:
        self._app, self._hosts, self._token = app, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on with bounded body and safe headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _plain(*refusal)(scope, receive, send)
            return
        if self._token is not None and _asked(scope) is not None:
            await self._welcome(scope, receive, send)
            return
        await self._passed_on(scope, receive, send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if headers.get("host", "") not in self._hosts:
            return 400, "this address is not served here; open the one that headwise serve printed"
        if self._token is not None and not self._has_token(scope, headers):
            return 403, "open the page with the address that headwise serve printed: it has a token"
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] not in self._hosts:
            return 403, "requests from other pages are refused"
        if PAGE_HEADER not in headers:
            return 403, "expected a request of the page itself; use the command or Python instead"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, f"expected at most {MOST_BYTES // 2**20} MiB, got more; use the command"
        return None

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            cookies.load(headers.get("cookie", ""))
        kept = cookies[COOKIE].value if COOKIE in cookies else ""
        wanted = (self._token or "").encode()
        given = (kept, _asked(scope) or "")
        return any(hmac.compare_digest(one.encode(), wanted) for one in given)

    async def _welcome(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep the token in a cookie and take it out of the address."""
        response = RedirectResponse(scope["path"], status_code=303, headers=HEADERS)
        response.set_cookie(COOKIE, self._token or "", httponly=True, samesite="strict")
        await response(scope, receive, send)

    async def _passed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken, started = 0, False

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise TooMuchError
            return message

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            await self._app(scope, bounded, with_headers)
        except TooMuchError:
            if not started:
                await _plain(413, "the request is too large")(scope, receive, send)


def _asked(scope: Scope) -> str | None:
    """The token in the address, if there is one."""
    found: dict[str, Any] = parse_qs(scope["query_string"].decode("latin-1"))
    return found.get("token", [None])[0]


def _plain(status: int, words: str) -> PlainTextResponse:
    return PlainTextResponse(words, status, headers=HEADERS)
