"""The local page: everything headwise knows, in the browser, on this machine only."""

from headwise.web.server import serve

__all__ = ["serve"]
