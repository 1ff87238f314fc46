"""The reference pages of the site name modules that exist, and every public package has one."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import headwise

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
NAMED = {name for page in PAGES for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}


def test_reference_pages_name_modules_that_exist():
    assert len(NAMED) > 15
    for name in NAMED:
        import_module(name)


def test_every_package_with_public_names_has_a_reference_page():
    packages = [f"headwise.{found.name}" for found in iter_modules(headwise.__path__, "")]
    public = {name for name in packages if hasattr(import_module(name), "__path__")}
    public = {name for name in public if getattr(import_module(name), "__all__", ())}
    assert len(public) > 10
    assert not public - NAMED


def test_the_site_lists_every_page():
    nav = str(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    assert not {page for page in pages if f"'{page}'" not in nav}
