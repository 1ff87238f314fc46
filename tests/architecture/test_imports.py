"""Modules import from lower bands alone and without cycles, and the command public names only."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "headwise").rglob("*.py"))
COMMAND = [path for path in SOURCES if path.parent.name == "cli"]


def test_layers_hold():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_a_broken_layer_would_be_reported(tmp_path):
    """The same contract over a tree in which errors imports the command line."""
    package = tmp_path / "headwise"
    for path in SOURCES:
        copy = package / path.relative_to(ROOT / "src" / "headwise")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    (package / "errors.py").write_text('"""Bad."""\nimport headwise.cli.console\n')
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "headwise.errors" in done.stdout


def cycles_of(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    graph = networkx.DiGraph(imports)
    found = networkx.strongly_connected_components(graph)
    return {frozenset(modules) for modules in found if len(modules) > 1}


def test_modules_import_without_cycles():
    """Imports inside functions are counted; those for type checkers alone never run."""
    graph = grimp.build_graph("headwise", cache_dir=None, exclude_type_checking_imports=True)
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


def cuts_of_sentences(text: str) -> list[str]:
    """Where a text is taken apart at a mark of sentences: data would not need it."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("partition", "rpartition", "split", "rsplit")
        and {ast.unparse(argument) for argument in call.args} & {"': '", "'; '", "';'", "'. '"}
    ]


#: What a package requires, in the form of the packaging standard.
NO_SENTENCE = {"line.partition('; ')"}


def test_nothing_is_read_back_out_of_sentences():
    assert {cut for path in SOURCES for cut in cuts_of_sentences(path.read_text())} == NO_SENTENCE


def test_reading_back_is_noticed():
    assert cuts_of_sentences("kind = line.partition(': ')[0]") == ["line.partition(': ')"]
    assert not cuts_of_sentences("kind, _, number = name.partition(':')")
