"""Functions that a person names as PACKAGE:FUNCTION."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from inspect import Signature, signature
from pathlib import Path
from typing import Any

from headwise.errors import HeadwiseError, ParameterError, UnreadableFileError


def function_named(name: str) -> Callable[..., Any]:
    """Import PACKAGE:FUNCTION; modules of the working directory are found too."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise UnreadableFileError(
            f"expected PACKAGE:FUNCTION, got {name!r}", hint="write it as package.module:function"
        )
    with own_code(name):
        found = getattr(import_module(module), function)
    if not callable(found):
        raise UnreadableFileError(
            f"expected a function called {name}, got {type(found).__name__}",
            hint="name a function",
        )
    return found


def as_function(name: str, given: Any) -> Callable[..., Any]:
    """Return a function that was passed itself or as PACKAGE:FUNCTION, for the parameter ``name``.

    >>> as_function("build", abs)(-1)
    1
    """
    if isinstance(given, str):
        return function_named(given)
    if not callable(given):
        raise ParameterError(
            f"expected a function or PACKAGE:FUNCTION as `{name}`, got {given!r}",
            hint="pass a function",
        )
    return given


def seeded(
    function: Callable[..., Any], name: str, *, optional: bool = True
) -> Callable[[int], Any]:
    """Return a function of a seed that passes the seed on only where ``function`` takes one.

    A parameter that has a default gets the seed if ``optional``, else it keeps its default.

    >>> seeded(lambda seed: seed, "batches")(3), seeded(lambda: "none", "batches")(3)
    (3, 'none')
    """
    try:
        taken = signature(function)
    except (TypeError, ValueError):  # written in C, without a signature
        return function
    if _fits(taken) and not (optional and (_fits(taken, 0) or _fits(taken, seed=0))):
        return lambda seed: function()
    if _fits(taken, 0):
        return function
    if _fits(taken, seed=0):
        return lambda seed: function(seed=seed)
    raise ParameterError(
        f"expected {name} to take a seed or nothing, got {name}{taken}",
        hint="give its other parameters defaults",
    )


def _fits(taken: Signature, *given: int, **named: int) -> bool:
    """Whether a call with these arguments is possible."""
    try:
        taken.bind(*given, **named)
    except TypeError:
        return False
    return True


@contextmanager
def working_directory_importable() -> Iterator[None]:
    """Import modules of the working directory first, as ``python -m`` does, in the block alone."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        with suppress(ValueError):  # a module may have removed it
            sys.path.remove(here)


@contextmanager
def own_code(name: str) -> Iterator[None]:
    """Run a person's own code: its errors become one line, its prints go to the error stream."""
    try:
        with working_directory_importable(), redirect_stdout(sys.stderr):
            yield
    except HeadwiseError:
        raise
    except SystemExit as error:
        raise UnreadableFileError(
            f"{name} called sys.exit({error.code!r})",
            hint="pass PACKAGE:FUNCTION that does not exit",
        ) from None
    except Exception as error:
        raise UnreadableFileError(
            f"{name} failed ({type(error).__name__}: {error})",
            hint="correct it, or run from the folder that holds the package",
        ) from None
