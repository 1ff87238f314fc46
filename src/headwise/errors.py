"""Every error headwise raises on purpose; each says what was received and what would work."""

from __future__ import annotations


class HeadwiseError(ValueError):
    """What went wrong, and a hint: what to do about it.

    >>> raise HeadwiseError("the matrix has no rows", hint="pass at least one row")
    Traceback (most recent call last):
    ...
    headwise.errors.HeadwiseError: the matrix has no rows; pass at least one row
    """

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"{problem}; {hint}")
        self.problem = problem
        self.hint = hint


class BadInputError(HeadwiseError):
    """The values or shapes received cannot be what was meant."""


class UndecidedError(HeadwiseError):
    """The answer is known only as an interval, and a single number was asked for."""


class InaccurateError(HeadwiseError):
    """A computation checked itself against something known, and failed."""


class TooLargeError(HeadwiseError):
    """The request would not fit in memory; it was refused before anything was allocated."""


class UnreadableFileError(HeadwiseError):
    """A file is absent, damaged, or not what its name says."""


class StoreError(HeadwiseError):
    """The store of results cannot be opened, read or written; what it holds is untouched."""


class StoreAwayError(StoreError):
    """The database of a store does not answer; it may come back."""


class ExecutorError(HeadwiseError):
    """The workers cannot be started or reached; what they had answered is stored."""


class StoppedError(HeadwiseError):
    """The run was interrupted; what was answered until then is stored."""


class CheckpointError(HeadwiseError):
    """A checkpoint belongs to another run; it is neither used nor overwritten."""


class MissingExtraError(HeadwiseError):
    """An optional dependency is not installed."""


def needs_extra(package: str, extra: str) -> MissingExtraError:
    """The error for an optional package that is not installed.

    >>> print(needs_extra("transformers", "hub"))
    this needs the package transformers; install it with: pip install 'headwise[hub]'
    """
    return MissingExtraError(
        f"this needs the package {package}",
        hint=f"install it with: pip install 'headwise[{extra}]'",
    )
