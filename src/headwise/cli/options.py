"""Read the values of options: every wrong value is refused before anything heavy is imported."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from headwise.checks import spelled_number
from headwise.endings import PAGES, refuse_missing_array, refuse_missing_source
from headwise.errors import ParameterError, UnreadableFileError
from headwise.whole_files import existing_file, possible_file


def option(
    name: str,
    help_: str,
    reader: Callable[..., Any] | None = None,
    *,
    metavar: str = "NUMBER",
    default: str | bool = True,
) -> typer.models.OptionInfo:
    """Return an option; ``reader`` turns its text, named ``metavar`` in the help, into a value."""
    if reader is None:
        return typer.Option(name, help=help_, show_default=default)
    return typer.Option(name, help=help_, parser=reader, metavar=metavar, show_default=default)


#: Options that several commands share.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a checkpoint, a .safetensors or GGUF file, or a hub id when online.",
        show_default=False,
    ),
]

#: How the name of a figure's file may end.
FIGURES = (".png", ".svg", ".pdf")


def number(text: str | int | float, such_as: str = "4096, 20k or 1.5M") -> int | float:
    """Read a number that may end in k, M, G or T."""
    found = spelled_number(text) if isinstance(text, str) else text
    if found is None:
        raise typer.BadParameter(f"expected a number such as {such_as}, got {text!r}")
    return found


def whole(text: str | int | float, such_as: str = "4096 or 20k") -> int:
    """Read a whole number that may end in k, M, G or T."""
    found = number(text, such_as)
    if found != int(found):
        raise typer.BadParameter(f"expected a whole number such as {such_as}, got {text!r}")
    return int(found)


def whole_from(least: int, most: int | float = math.inf, such_as: str = "") -> Callable[..., int]:
    """Return a reader of whole numbers in a range; its error names the example ``such_as``.

    >>> whole_from(1)("20k")
    20000
    """

    def read(text: str | int) -> int:
        found = whole(text, such_as or ("4096 or 20k" if most > 10**5 else str(most)))
        _refuse_outside(found, least, most, text)
        return found

    return read


def one_or_several(least: int, most: int | float = math.inf) -> Callable[..., int | list[int]]:
    """Return a reader of one whole number in a range, or of several between commas.

    >>> one_or_several(1)("64"), one_or_several(1)("64,128")
    (64, [64, 128])
    """
    each = whole_from(least, most, such_as="64 or 64,128")

    def read(text: str | int) -> int | list[int]:
        if "," not in str(text):
            return each(text)
        parts = str(text).split(",")
        # Of two readings of a comma one is an accident: nobody writes the number 24 as 024.
        if any(re.fullmatch(r"0\d\d", part.strip()) for part in parts):
            joined = "".join(map(str.strip, parts))
            raise typer.BadParameter(
                f"expected numbers between commas, got {text!r}; write {joined} without commas"
            )
        return [each(part) for part in parts]

    return read


def count_from(least: int, such_as: str) -> Callable[..., int]:
    """Return a reader of one whole number where people might write a list: it has no commas.

    >>> count_from(2, such_as="3")("5")
    5
    """
    read = whole_from(least, such_as=such_as)

    def counted(text: str | int) -> int:
        if "," in str(text):
            raise typer.BadParameter(
                f"expected one whole number without commas, such as {such_as}, got {text!r}"
            )
        return read(text)

    return counted


def number_in(
    least: int | float, most: int | float = math.inf, *, open_: bool = False
) -> Callable[..., float]:
    """Return a reader of numbers in a range, with or without its ends.

    >>> number_in(0, 1, open_=True)("0.9")
    0.9
    """

    def read(text: str | int | float) -> float:
        found = number(text, _example(least))
        _refuse_outside(found, least, most, text, open_ends=2 * open_)
        return float(found)

    return read


def number_above(least: int | float, most: int | float = math.inf) -> Callable[..., float]:
    """Return a reader of numbers above the first limit and up to the second.

    >>> number_above(0, 0.5)("0.5")
    0.5
    """

    def read(text: str | int | float) -> float:
        found = number(text, _example(least))
        _refuse_outside(found, least, most, text, open_ends=1)
        return float(found)

    return read


def amount(text: str) -> str:
    """Read a number of things, or a share of them."""
    if not text.endswith("%"):
        return str(whole_from(1)(text))
    if not 0 < number(text[:-1], "50") <= 100:
        raise typer.BadParameter(f"expected a share above 0% and at most 100%, got {text}")
    return text


def matching(pattern: str | re.Pattern[str], wanted: str) -> Callable[[str], str]:
    """Return a reader of text of a certain form."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise typer.BadParameter(f"expected {wanted}, got {text!r}")
        return text

    return read


def passing(check: Callable[[str], Any]) -> Callable[[str], str]:
    """Return a reader of text that a check of the library accepts.

    >>> from headwise.devices import device_kind
    >>> passing(device_kind)("cuda:1")
    'cuda:1'
    """

    def read(text: str) -> str:
        try:
            check(text)
        except ParameterError as error:
            # The message about an option begins with its name.
            problem = re.sub("^expected `[a-z_]+`", "expected", error.problem)
            raise typer.BadParameter(problem) from None
        return text

    return read


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


def html_file(text: str | Path) -> Path:
    """Read the name of a file for an HTML report.

    >>> html_file("report.html").name
    'report.html'
    """
    file = Path(text)
    if file.suffix.lower() not in PAGES:
        raise typer.BadParameter(
            f"expected an HTML file, got {file}; pass --html {file.with_suffix('.html')}"
        )
    return file


#: The HTML report of every command that writes one.
Html = Annotated[
    Path | None,
    option("--html", "Write an HTML report to this file.", html_file, metavar="FILE"),
]


def refuse_unwritable(*files: Path | None) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    for file in files:
        if file is not None:
            possible_file(file)


def refuse_missing(
    source: str | None = None,
    config: Path | None = None,
    *,
    arrays: Iterable[Path | None] = (),
) -> None:
    """Refuse data that are not there, before torch is imported."""
    if source is not None:
        refuse_missing_source(source)
    if config is not None:
        existing_file(config, hint="pass a config.json")
    for file in arrays:
        if file is not None:
            refuse_missing_array(file)


def text_in_file(name: str) -> str:
    """Return the content of the file that ``--text`` names; - is the standard input."""
    try:
        if name == "-":
            raw = getattr(sys.stdin, "buffer", None)
            return sys.stdin.read() if raw is None else raw.read().decode("utf-8")
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{'the standard input' if name == '-' else name} is no readable UTF-8 text"
        if isinstance(error, FileNotFoundError):
            problem = f"there is no file {name}"
        hint = "pass the path of a UTF-8 text file"
        raise UnreadableFileError(problem, hint=hint) from None


def _example(least: int | float) -> str:
    """A number that is allowed above this limit."""
    return "0.1" if least < 0.1 else "4096, 20k or 1.5M"


def _refuse_outside(
    found: int | float, least: int | float, most: int | float, given: object, open_ends: int = 0
) -> None:
    """Refuse a number outside a range; of its ends none, the lower or both are left out."""
    above = found > least if open_ends else found >= least
    if above and (found < most if open_ends == 2 and math.isfinite(most) else found <= most):
        return
    if open_ends:
        span = f"above {least:,}"
        if math.isfinite(most):
            span += f" and {'below' if open_ends == 2 else 'at most'} {most:,}"
    else:
        span = f"from {least:,} to {most:,}" if math.isfinite(most) else f"of at least {least:,}"
    raise typer.BadParameter(f"expected a number {span}, got {given}")
