"""Every error that headwise raises on purpose."""

from __future__ import annotations

__all__ = [
    "BadInputError",
    "CheckpointError",
    "ExecutorError",
    "HeadwiseError",
    "InaccurateError",
    "MissingExtraError",
    "ParameterError",
    "StoppedError",
    "StoreError",
    "TooLargeError",
    "UndecidedError",
    "UnreadableFileError",
    "needs_extra",
]


class HeadwiseError(ValueError):
    """The base of all errors of headwise: a problem, and a hint on what to do about it.

    Args:
        problem: What is wrong, best as "expected X, got Y".
        hint: What to do, starting with a verb.

    Attributes:
        problem: What is wrong.
        hint: What to do.

    Example:
        >>> raise HeadwiseError("expected a matrix with rows, got none", hint="pass one row")
        Traceback (most recent call last):
        ...
        headwise.errors.HeadwiseError: expected a matrix with rows, got none; pass one row
    """

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"{problem}; {hint}")
        self.problem = problem
        self.hint = hint


class BadInputError(HeadwiseError):
    """The data received have the wrong shape, dtype or values."""


class ParameterError(BadInputError):
    """A parameter is unknown, out of range, or does not go with another parameter.

    The call is wrong whatever the data are. The command exits with 2, as for a wrong option.
    """


class UndecidedError(HeadwiseError):
    """The result is an interval, and a single number was asked for."""


class InaccurateError(HeadwiseError):
    """A computation failed its own check against a known value."""


class TooLargeError(HeadwiseError):
    """The request does not fit in memory or time; nothing was allocated."""


class UnreadableFileError(HeadwiseError):
    """A file is missing, damaged, or of another format than its name says."""


class StoreError(HeadwiseError):
    """The result store cannot be opened, read or written; its contents are unchanged."""


class StoreAwayError(StoreError):
    """The database of a store does not answer; it may come back."""


class ExecutorError(HeadwiseError):
    """Workers cannot be started or reached; finished results are stored."""


class StoppedError(HeadwiseError):
    """The run was interrupted; finished results are stored."""


class CheckpointError(HeadwiseError):
    """A checkpoint belongs to another run; it was neither used nor overwritten."""


class MissingExtraError(HeadwiseError):
    """An optional dependency is not installed."""


def needs_extra(package: str, extra: str) -> MissingExtraError:
    """Make the error for an optional package that is not installed.

    Args:
        package: The package that is missing.
        extra: The extra of headwise that installs it.

    Returns:
        The error, to be raised.

    Example:
        >>> print(needs_extra("pandas", "frames"))
        this needs the package pandas; install it with: pip install 'pandas>=2.2'
    """
    wanted = " ".join(f"'{name}'" for name in _requirements(extra) or [package])
    return MissingExtraError(
        f"this needs the package {package}", hint=f"install it with: pip install {wanted}"
    )


def _requirements(extra: str) -> list[str]:
    """What an extra installs. Outside a checkout, `headwise[extra]` would be sought on an index."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("headwise") or []
    except PackageNotFoundError:  # used from its source folder
        return []
    parts = (line.partition("; ") for line in lines)
    return [name for name, _, marker in parts if marker == f"extra == '{extra}'"]
