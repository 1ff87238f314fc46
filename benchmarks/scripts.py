"""How a script ends: what headwise refuses is one line, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from headwise.errors import HeadwiseError


def run_script(main: Callable[[], int | None]) -> None:
    """Exit with what main returns, or with 1 and the one line of an error."""
    try:
        sys.exit(main())
    except HeadwiseError as error:
        sys.exit(str(error))
