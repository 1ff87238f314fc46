"""Functions that a person names as PACKAGE:FUNCTION."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from headwise.errors import UnreadableFileError


def function_named(name: str) -> Callable[..., Any]:
    """Import PACKAGE:FUNCTION; modules of the working directory are found too."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise UnreadableFileError(
            f"expected PACKAGE:FUNCTION, got {name!r}", hint="write it as package.module:function"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    # The code is the user's own: whatever it raises becomes one line, and what it prints goes to
    # the error stream.
    try:
        with redirect_stdout(sys.stderr):
            found = getattr(import_module(module), function)
    except SystemExit as error:
        raise UnreadableFileError(
            f"{name} called sys.exit({error.code!r})", hint="pass a module that does not exit"
        ) from None
    except Exception as error:
        raise UnreadableFileError(
            f"cannot import {name} ({type(error).__name__}: {error})",
            hint="check the name and run from the folder that holds the package",
        ) from None
    if not callable(found):
        raise UnreadableFileError(
            f"expected a function called {name}, got {type(found).__name__}",
            hint="name a function",
        )
    return found
