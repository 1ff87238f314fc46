"""Functions that a person names as PACKAGE:FUNCTION."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from headwise.errors import HeadwiseError, UnreadableFileError


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
