"""Read the values of options: every wrong value is refused before anything heavy is imported."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

#: Options that several commands share.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a checkpoint, a GGUF file, or a hub id when online.",
        show_default=False,
    ),
]

_SUFFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}

#: How the name of a figure's file may end.
FIGURES = (".png", ".svg", ".pdf")


def number(text: str | int | float) -> float:
    """Read a number that may end in k, M, G or T."""
    if not isinstance(text, str):
        return float(text)
    factor = _SUFFIXES.get(text[-1:].lower(), 1.0)
    digits = text[:-1] if factor > 1 else text
    try:
        found = float(digits) * factor
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise typer.BadParameter(f"expected a number such as 4096, 20k or 1.5M, got {text!r}")
    return found


def whole(text: str | int | float) -> int:
    """Read a whole number that may end in k, M, G or T."""
    found = number(text)
    nearest = round(found) if math.isfinite(found) else 0
    if not math.isclose(found, nearest, rel_tol=1e-12, abs_tol=0):
        raise typer.BadParameter(f"expected a whole number such as 4096 or 20k, got {text!r}")
    return nearest


def whole_from(least: int, most: int | float = math.inf) -> Callable[..., int]:
    """Return a reader of whole numbers in a range.

    >>> whole_from(1)("20k")
    20000
    """

    def read(text: str | int) -> int:
        found = whole(text)
        _refuse_outside(found, least, most)
        return found

    return read


def number_in(
    least: int | float, most: int | float = math.inf, *, open_: bool = False
) -> Callable[..., float]:
    """Return a reader of numbers in a range, with or without its ends.

    >>> number_in(0, 1, open_=True)("0.9")
    0.9
    """

    def read(text: str | int | float) -> float:
        found = number(text)
        if isinstance(text, str) and math.isinf(found):
            raise typer.BadParameter(f"expected a finite number, got {text!r}")
        _refuse_outside(found, least, most)
        if open_ and found in (least, most):
            upper = f" and below {most:g}" if math.isfinite(most) else ""
            raise typer.BadParameter(f"expected a number above {least:g}{upper}, got {found:g}")
        return found

    return read


def number_above(least: int | float, most: int | float = math.inf) -> Callable[..., float]:
    """Return a reader of numbers above the first limit and up to the second.

    >>> number_above(0, 0.5)("0.5")
    0.5
    """

    def read(text: str | int | float) -> float:
        found = number_in(least, most)(text)
        if found == least:
            raise typer.BadParameter(f"expected a number above {least:g}, got {found:g}")
        return found

    return read


def amount(text: str) -> str:
    """Read a number of things, or a share of them."""
    if not text.endswith("%"):
        return str(whole_from(1)(text))
    number_above(0, 100)(text[:-1])
    return text


def matching(pattern: str, wanted: str) -> Callable[[str], str]:
    """Return a reader of text of a certain form."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise typer.BadParameter(f"expected {wanted}, got {text!r}")
        return text

    return read


def device_name(text: str) -> str:
    """Read the name of a device.

    >>> device_name("cuda:1")
    'cuda:1'
    """
    return matching(r"cpu|(cuda|mps)(:\d+)?", "cpu, cuda or cuda:1")(text)


def cluster_address(text: str) -> str:
    """Read the address of a Dask cluster.

    >>> cluster_address("local:4")
    'local:4'
    """
    pattern = r"local(:[1-9]\d*)?|(tcp|tls)://[^\s/]+:\d+"
    return matching(pattern, "local, local:4 or tcp://HOST:PORT")(text)


def store_place(text: str) -> str:
    """Read where results are kept.

    >>> store_place("results.db")
    'results.db'
    """
    pattern = r"(sqlite|postgres)[a-z0-9+]*://.*|(?!.*://).+"
    return matching(pattern, "a path, sqlite:///PATH or postgresql://HOST/DATABASE")(text)


def tokenizer_name(text: str) -> str:
    """Read the name of a tokenizer, or of its file.

    >>> tokenizer_name("word")
    'word'
    """
    return matching("character|word|.+[./].*", "character, word or a tokenizer.json")(text)


def figure_file(text: str | Path) -> Path:
    """Read the name of a file that a figure can be drawn into.

    >>> figure_file("curve.svg").name
    'curve.svg'
    """
    file = Path(text)
    if file.suffix.lower() not in FIGURES:
        raise typer.BadParameter(f"expected a name ending in {', '.join(FIGURES)}, got {file.name}")
    return file


def _refuse_outside(found: int | float, least: int | float, most: int | float) -> None:
    if not least <= found <= most:
        span = f"from {least:,} to {most:,}" if math.isfinite(most) else f"of at least {least:,}"
        raise typer.BadParameter(f"expected a number {span}, got {found:,}")
