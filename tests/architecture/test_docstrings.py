"""Public names say what they take, return and raise, and show an example that runs."""

import ast
import doctest
import inspect
import pkgutil
import re
import tomllib
from enum import Enum
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import headwise
from headwise import errors

ROOT = Path(__file__).parents[2]
PACKAGES = [headwise.__name__] + [
    found.name for found in pkgutil.walk_packages(headwise.__path__, "headwise.") if found.ispkg
]
ERRORS = {name for name, kind in vars(errors).items() if inspect.isclass(kind)}


def public_names() -> dict[str, object]:
    """Functions and classes of headwise in the ``__all__`` of a package, once each."""
    found = {}
    for package in PACKAGES:
        home = import_module(package)
        for name in getattr(home, "__all__", ()):
            value = getattr(home, name)
            ours = getattr(value, "__module__", "").startswith("headwise")
            if ours and (inspect.isclass(value) or inspect.isfunction(value)):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


PUBLIC = public_names()


def parameters_of(value: object) -> list[str]:
    """What a caller may pass; nothing for protocols, abstract classes and errors."""
    if inspect.isclass(value):
        exempt = getattr(value, "_is_protocol", False) or inspect.isabstract(value)
        if exempt or issubclass(value, (Exception, Enum)):
            return []
    return [name for name in inspect.signature(value).parameters if name not in ("args", "kwargs")]


def returns_something(value: object) -> bool:
    if inspect.isclass(value) or inspect.isgeneratorfunction(inspect.unwrap(value)):
        return False
    returned = inspect.signature(value).return_annotation
    return str(returned) not in ("None", "Iterator[None]", "NoReturn")


def raised_by(value: object) -> set[str]:
    """Errors that the body of a function, or the constructor of a class, raises."""
    names = value.__qualname__.replace("<locals>.", "").split(".")
    scopes: list[ast.AST] = [ast.parse(Path(inspect.getfile(value)).read_text())]
    for name in names:
        scopes = [node for scope in scopes for node in ast.walk(scope) if defines(node, name)]
    if inspect.isclass(value):
        made = ("__post_init__", "__init__")
        scopes = [node for scope in scopes for node in scope.body if defines(node, *made)]
    raised = [
        node.exc
        for scope in scopes
        for node in ast.walk(scope)
        if isinstance(node, ast.Raise) and node.exc
    ]
    return {ast.unparse(getattr(error, "func", error)).rpartition(".")[2] for error in raised}


def defines(node: ast.AST, *names: str) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(node, kinds) and node.name in names


def missing_from(value: object) -> list[str]:
    """The sections that the docstring of a public name should have and does not."""
    text = documentation(value)
    lines = set(map(str.strip, text.splitlines()))
    examples = [found for found in doctest.DocTestFinder().find(value, "value") if found.examples]
    missing = []
    if parameters_of(value) and not lines & {"Args:", "Attributes:"}:
        missing.append("Args")
    missing += [f"Args of {name}" for name in parameters_of(value) if f"{name}:" not in text]
    if returns_something(value) and "Returns:" not in lines:
        missing.append("Returns")
    if raised_by(value) & ERRORS and "Raises:" not in lines:
        missing.append("Raises")
    # "Attributes" marks a result: the function that returns it has the example.
    if not examples and "Attributes:" not in lines:
        missing.append("an example")
    return missing


def documentation(value: object) -> str:
    """The docstring of a function; of a class, with those of the classes it derives from."""
    kinds = value.__mro__ if inspect.isclass(value) else [value]
    ours = [kind for kind in kinds if kind.__module__.startswith(("headwise", __name__))]
    return "\n".join(kind.__doc__ or "" for kind in ours)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented(package):
    incomplete = {
        name: missing
        for name, value in PUBLIC.items()
        if home_of(value) == package and (missing := missing_from(value))
    }
    assert not incomplete


def home_of(value: object) -> str:
    """The package that holds the module of a public name."""
    module = import_module(value.__module__)
    return module.__name__ if is_package(module) else value.__module__.rpartition(".")[0]


def is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def test_public_names_are_found():
    assert len(PUBLIC) > 150
    assert all(home_of(value) in PACKAGES for value in PUBLIC.values())


def test_missing_sections_are_noticed():
    def silent(count: int) -> int:
        """Say nothing."""
        raise errors.BadInputError("expected more", hint="write more")

    assert missing_from(silent) == ["Args", "Args of count", "Returns", "Raises", "an example"]

    def complete(count: int) -> int:
        """Count.

        Args:
            count: A number.

        Returns:
            The number.

        Raises:
            BadInputError: Always.

        Example:
            >>> 1 + 1
            2
        """
        raise errors.BadInputError("expected more", hint="write more")

    assert missing_from(complete) == []


def exempt_from_sections() -> list[str]:
    """Patterns of source files in which ruff does not check the sections of docstrings."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    ignored = lint["per-file-ignores"].items()
    return [pattern for pattern, rules in ignored if "DOC" in rules and pattern.startswith("src/")]


def expanded(pattern: str) -> list[str]:
    """A pattern without braces: "a{b,c}" becomes "ab" and "ac"; the innermost braces first."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    start, end = pattern[: found.start()], pattern[found.end() :]
    return [one for choice in found[1].split(",") for one in expanded(start + choice + end)]


def test_ruff_checks_the_sections_of_every_module_with_public_names():
    """Modules that are exempt from its DOC rules define internal names alone."""
    patterns = [one for pattern in exempt_from_sections() for one in expanded(pattern)]
    files = {import_module(value.__module__).__file__ for value in PUBLIC.values()}
    homes = {Path(file).relative_to(ROOT) for file in files}
    exempt = [
        str(home)
        for home in sorted(homes)
        if any(fnmatch(str(home), pattern) for pattern in patterns)
    ]
    assert patterns and homes and not exempt


def test_patterns_with_braces_are_expanded():
    assert expanded("a/{b,{c,d}}/*.py") == ["a/b/*.py", "a/c/*.py", "a/b/*.py", "a/d/*.py"]
