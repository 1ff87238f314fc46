"""The manner of the tree: names, sizes, docstrings, examples; each rule is also shown to bite."""

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import headwise

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headwise"
SOURCES = sorted(PACKAGE.rglob("*.py"))
COMPILED = sorted([*PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h")])
PUBLIC = [name for name in dir(headwise) if name != "__version__"]
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common", "tools", "stuff"}


def test_the_sources_are_found():
    assert len(SOURCES) > 15 and len(COMPILED) > 5


def test_every_module_says_what_it_is():
    assert not [path for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text()))]


def test_no_name_is_vague():
    assert not [p for p in SOURCES if VAGUE & {p.stem, *p.relative_to(ROOT).parts}]


def test_files_stay_small():
    assert not [p for p in (*SOURCES, *COMPILED) if p.read_text().count("\n") > 350]


#: Functions whose parameters and docstring alone take more than 60 lines.
MANY_PARAMETERS = {"advise", "reduce", "scan", "trial", "trial_of"}


def lengths(text: str) -> dict[str, tuple[int, int]]:
    """Lines of each function, with its docstring and without."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            whole = node.end_lineno - node.lineno + 1
            first = node.body[0]
            said = ast.get_docstring(node) is not None
            documented = first.end_lineno - first.lineno + 1 if said else 0
            found[node.name] = (whole, whole - documented)
    return found


def test_functions_stay_small():
    for path in SOURCES:
        for name, (whole, code) in lengths(path.read_text()).items():
            assert whole <= 60 or name in MANY_PARAMETERS, f"{path}: {name} has {whole} lines"
            assert code <= 60, f"{path}: {name} has {code} lines without its docstring"


def test_a_long_function_would_be_noticed():
    body = "\n".join(["    x = 1"] * 70)
    assert lengths(f'def long():\n    """Say it."""\n{body}\n') == {"long": (72, 71)}


def has_example(value: object) -> bool:
    """Whether the docstring of a function or class, or of one of its members, has an example."""
    return bool(doctest.DocTestFinder().find(value, "value")) and any(
        found.examples for found in doctest.DocTestFinder().find(value, "value")
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_runs(name):
    assert has_example(getattr(headwise, name)), f"headwise.{name} has no example"


def test_a_name_without_example_would_be_noticed():
    def silent() -> None:
        """Says nothing."""

    assert not has_example(silent)


@pytest.mark.parametrize("package", ["headwise.runs", "headwise.report"])
def test_every_name_of_a_package_has_an_example_that_runs(package):
    home = import_module(package)
    # An alias of types has no docstring.
    documented = [name for name in home.__all__ if inspect.isroutine(getattr(home, name))]
    documented += [name for name in home.__all__ if inspect.isclass(getattr(home, name))]
    assert len(documented) > 8
    for name in documented:
        assert getattr(home, name) is dict or has_example(getattr(home, name)), name


def test_public_names_come_from_where_they_are_listed():
    """The list, the table of homes and the imports for type checkers agree."""
    tree = ast.parse(Path(headwise.__file__).read_text())
    typed = {
        alias.name: node.module.removeprefix("headwise.")
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        for alias in node.names
    }
    assert typed == headwise._HOME
    assert sorted(headwise.__all__) == sorted([*typed, "__version__"])
    for name, home in typed.items():
        assert getattr(headwise, name) is getattr(import_module(f"headwise.{home}"), name)
        assert not isinstance(getattr(headwise, name), ModuleType)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'measrue'"):
        _ = headwise.measrue


def test_every_error_carries_a_hint():
    from headwise import errors

    kinds = [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    ]
    assert len(kinds) > 3
    for kind in kinds:
        raised = kind("it broke", hint="mend it")
        assert (str(raised), raised.hint) == ("it broke; mend it", "mend it")
