"""What every command shares: where it prints, and how JSON and errors look."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import partialmethod
from logging import ERROR, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: What to print where the output's encoding lacks a character.
_PLAINER = str.maketrans(
    {
        character: plainer
        for characters, plainer in (
            ("┄─━╌═–—−‐‑", "-"),
            ("│┃┆┤├╷╵▏┊", "|"),
            ("└┘┌┐┼┴┬╰╯╭╮", "+"),
            ("●•▪█▓▒░▇▆▅▄▃▂▁·", "*"),
            ("◆◇", "#"),
            ("■", "@"),
            ("∙", "."),
            ("○◦□", "o"),
            ("‘’", "'"),
            ("“”„", '"'),
            ("≤", "<="),
            ("≥", ">="),
            ("≈", "~"),
            ("≠", "!="),
            ("±", "+/-"),
            ("×", "x"),
            ("√", "sqrt"),
            ("→", "->"),
            ("←", "<-"),
            ("ε", "eps"),
            ("σ", "sigma"),
            ("∞", "inf"),
            ("✓", "yes"),
            ("✗", "no"),
        )
        for character in characters
    }
)


class Verb(TyperCommand):
    """A command whose help names arguments as sentences do: MODEL, not {MODEL} or MODEL <str>."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Leave out the braces around an argument that is needed."""
        return [re.sub(r"^{(.*)}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Leave out the types of arguments, which their descriptions say."""
        for one in self.params:
            if one.param_type_name == "argument":
                vars(one)["display_type_rich"] = lambda ctx: ""
        super().format_options(ctx, formatter)


class UsageError(typer.TyperException):
    """The options given do not go together: exit code 2."""

    exit_code = 2


def complain(message: str) -> None:
    """Print one line on the error stream, whatever line breaks the message has."""
    line = " ".join(message.split())
    note("headwise: " + "".join(each if each.isprintable() else "?" for each in line))


def harmless(text: str) -> str:
    r"""Replace what may be a command to the terminal: names in files and paths may hold some.

    >>> harmless("a\x1b[31m\nb")
    'a?[31m\nb'
    """
    if text.isprintable():
        return text
    return "".join(
        "?" if unicodedata.category(each) in ("Cc", "Cf") and each not in "\n\t" else each
        for each in text
    )


def note(line: str) -> None:
    """Print on the error stream, so that the line never mixes with a result."""
    print(line, file=sys.stderr, flush=True)


def screen() -> Console:
    """Return the console that people read: no markup, so that ``[/x]`` in a path is a path.

    To emphasise, pass ``style="bold"`` or a ``rich.text.Text``. In a pipe there is no colour.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Screen(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else harmless(text), style, control)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1; the command decides instead

    return Screen(highlight=False, markup=False, emoji=False)


def emphasised(text: str) -> Text:
    """Make every second part of a text bold, as ``**`` marks it.

    >>> emphasised("a rank of **7** is enough").spans
    [Span(10, 11, 'bold')]
    """
    from rich.text import Text

    parts = text.split("**")
    return Text.assemble(*((part, "bold" if place % 2 else "") for place, part in enumerate(parts)))


def print_json(value: Any) -> None:
    """Print ``value`` as JSON on the output stream, and nothing else."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    escaped = not encoding.lower().startswith("utf")
    print(json.dumps(value, indent=2, ensure_ascii=escaped, allow_nan=False))


def dtype_name(dtype: object) -> str:
    """Name a dtype without its module: ``torch.float64`` becomes ``float64``."""
    return str(dtype).removeprefix("torch.")


def quieten_transformers() -> None:
    """Leave the error stream to our own progress and errors."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # read when tqdm is imported
    bars: Any = sys.modules.get("tqdm.std")
    if bars is not None:  # torch has imported it already
        bars.tqdm.__init__ = partialmethod(bars.tqdm.__init__, disable=True)
    try:
        from transformers.utils import logging
    except ImportError:
        return
    logging.set_verbosity_error()
    getLogger("huggingface_hub").setLevel(ERROR)  # it reports every attempt to reach the hub
    logging.disable_progress_bar()


def print_in_any_encoding() -> None:
    """Write characters that a stream cannot encode in a simpler form instead of failing."""
    codecs.register_error("headwise", _plainer)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="headwise")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded: by our table, by Unicode's own decomposition, or by ``?``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAINER)
    simpler = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return simpler or "?" * len(text), error.end


def open_closed_streams() -> None:
    """Send what nobody reads to the null device, so that no file takes the place of a stream."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def is_of_stream(error: OSError) -> bool:
    """Whether an open stream could not be written; files that fail have a name."""
    full = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return error.filename is None and error.errno in full


def close_quietly(stream: TextIO) -> None:
    """Let the interpreter exit without a word about a reader that has gone away."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
