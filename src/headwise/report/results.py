"""What results share: a short repr, a DataFrame of their rows, a figure of their curves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from headwise.report.rendering import save
from headwise.report.tables import data_frame

#: A repr has at most so many characters, and each value within it.
MOST, MOST_OF_ONE = 280, 72

#: Longer collections are shown by their length; of other types only these are written out.
MOST_ITEMS = 12
PLAIN = (int, list, Mapping, Set)


class Tabular(ABC):
    """A result with rows; a class that derives from it says in its docstring what they are."""

    @abstractmethod
    def _rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows, by column."""

    def _columns(self) -> list[str] | None:
        """The names of the columns if there are no rows to name them."""
        return None

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns:
            A DataFrame with one row for each row of the result.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        return data_frame(self._rows(), self._columns())


class Drawable(ABC):
    """A result with a figure; a class that derives from it says in its docstring what it shows."""

    @abstractmethod
    def _figure(self) -> Any:
        """The matplotlib figure."""

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the result.

        Args:
            file: Where to save the figure: png, svg or pdf. None saves nothing.

        Returns:
            The matplotlib figure.

        Raises:
            BadInputError: If the file cannot be written.
        """
        return save(self._figure(), file)


def short_repr(self: Any) -> str:
    """Return the repr of a dataclass without what is long or not set.

    Assign it as ``__repr__`` to a dataclass with tensors, many fields or long tuples. Fields that
    are None are left out. Tensors are shown as their dtype and shape, and long values by their
    number of items or by their type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Found:
    ...     rank: int
    ...     note: str | None
    ...     curve: tuple[float, ...]
    ...     __repr__ = short_repr
    >>> Found(3, None, (0.5,) * 50)
    Found(rank=3, curve=<50 of float>)
    """
    parts: list[str] = []
    start = f"{type(self).__qualname__}("
    left = MOST - len(start)
    for field in fields(self):
        found = getattr(self, field.name)
        if found is None or not field.repr:
            continue
        part = f"{field.name}={_shown(found)}"
        left -= len(part) + 2
        if left < 0:
            parts.append("…")
            break
        parts.append(part)
    return f"{start}{', '.join(parts)})"


def _shown(value: Any) -> str:
    """A value in few characters: a tensor as its shape, long collections as their length."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"<{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}>"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return repr(value if len(value) <= MOST_OF_ONE else f"{value[: MOST_OF_ONE - 1]}…")
    if isinstance(value, (Sequence, Mapping)) and len(value) > MOST_ITEMS:
        return _counted(value)
    if isinstance(value, tuple):
        written = f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
        return written if len(written) <= MOST_OF_ONE else _counted(value)
    written = repr(value) if is_dataclass(value) or isinstance(value, PLAIN) else ""
    if 0 < len(written) <= MOST_OF_ONE:
        return written
    whole = isinstance(value, (Sequence, Mapping))
    return _counted(value) if whole else f"<{type(value).__qualname__}>"


def _counted(values: Sequence[Any] | Mapping[Any, Any]) -> str:
    """How many items there are, and of which type if they share one."""
    items = values.values() if isinstance(values, Mapping) else values
    kinds = {type(item).__qualname__ for item in items}
    return f"<{len(values)} of {kinds.pop()}>" if len(kinds) == 1 else f"<{len(values)} items>"
