"""A server and a browser that the tests of the page share."""

import shutil

import pytest
import torch

from headwise import scan
from headwise.attention import HeadGeometry, mha
from web_server import Server

#: The browser asks no other host for anything, and runs as root in containers.
FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def chromium():
    """The browser of this system; nothing is downloaded."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium is installed; install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with scans of two small models."""
    place = tmp_path_factory.mktemp("page") / "results.db"
    for heads in (3, 4):
        tokens = torch.randn(1, 16, 12, generator=torch.Generator().manual_seed(heads))
        scan(mha(HeadGeometry.standard(12, heads=heads)), tokens, store=place)
    return place


@pytest.fixture(scope="module")
def server(store):
    with Server(store) as running:
        yield running
