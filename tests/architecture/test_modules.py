"""Modules import without cycles, and the command uses public names only."""

import ast
from importlib import import_module
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).parents[2]
COMMAND = sorted((ROOT / "src" / "headwise" / "cli").glob("*.py"))


def cycles_of(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    graph = networkx.DiGraph(imports)
    found = networkx.strongly_connected_components(graph)
    return {frozenset(modules) for modules in found if len(modules) > 1}


def test_modules_import_without_cycles():
    """Imports inside functions and for type checkers are counted."""
    graph = grimp.build_graph("headwise", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 100
    assert not cycles_of(imports)


def test_a_cycle_is_noticed():
    assert cycles_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}


def inner_modules(path: Path) -> set[str]:
    """Modules from which a file imports names that are in no ``__all__``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("headwise."):
            continue
        if node.module.startswith("headwise.cli"):
            continue
        public = getattr(import_module(node.module), "__all__", ())
        if not {alias.name for alias in node.names} <= set(public):
            found.add(node.module)
    return found


def test_the_command_uses_public_names_only():
    assert not set().union(*map(inner_modules, COMMAND))
