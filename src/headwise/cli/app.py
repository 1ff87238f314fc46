"""The headwise command: its verbs, and how an error becomes one line and an exit code.

| exit code | meaning |
|---|---|
| 0 | done, or the reader of a pipe (``| head``) has seen enough |
| 1 | a problem with a file, the data or the machine |
| 2 | wrong usage: an option is unknown, out of range or does not go with another |
| 130 | stopped by Ctrl-C |
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from headwise.cli.advise import advise
from headwise.cli.bound import bound
from headwise.cli.console import (
    Verb,
    close_quietly,
    complain,
    is_of_stream,
    open_closed_streams,
    print_in_any_encoding,
)
from headwise.cli.data import data
from headwise.cli.demo import demo
from headwise.cli.interrupts import noted_interrupts
from headwise.cli.law import law
from headwise.cli.rank import rank
from headwise.cli.reduce import reduce
from headwise.cli.report import report
from headwise.cli.reproduce import reproduce
from headwise.cli.scan import scan
from headwise.cli.serve import serve
from headwise.cli.trial import trial
from headwise.errors import HeadwiseError, ParameterError, StoppedError
from headwise.faces import spoken
from headwise.version import __version__

app = typer.Typer(
    name="headwise",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("advise", cls=Verb, short_help="Advise how many heads, of what rank, before training.")(
    advise
)
app.command("trial", cls=Verb, short_help="Train several geometries side by side on your data.")(
    trial
)
app.command("rank", cls=Verb, short_help="Measure the rank of an attention matrix.")(rank)
app.command("scan", cls=Verb, short_help="Measure the attention rank of every head of a model.")(
    scan
)
app.command("reduce", cls=Verb, short_help="Cut a trained model to a smaller rank or KV cache.")(
    reduce
)
app.command("law", cls=Verb, short_help="Predict the attention rank of a random head by formula.")(
    law
)
app.command(
    "bound", cls=Verb, short_help="Bound the error of low-rank heads, or the heads needed."
)(bound)
app.command("reproduce", cls=Verb, short_help="Recompute figures and tables of the papers.")(
    reproduce
)
app.command("report", cls=Verb, short_help="Write the report of the stored figures and tables.")(
    report
)
app.command("data", cls=Verb, short_help="List real datasets, and how to get missing ones.")(data)
app.command(
    "serve", cls=Verb, short_help="Open the local page: ask, look at laws, scans and exhibits."
)(serve)
app.command("demo", cls=Verb, short_help="Compare numpy, torch and headwise on one matrix.")(demo)


#: Names of the HTML report in earlier versions or in other commands, with what to type now.
RENAMED = {
    ("advise", "--out"): "--html FILE",
    ("advise", "--report"): "--html FILE",
    ("scan", "--out"): "--html FILE",
    ("scan", "--report"): "--html FILE",
    ("trial", "--out"): "--html FILE",
    ("trial", "--report"): "--html FILE",
    ("reduce", "--report"): "--html FILE",
}


def _show_version(wanted: bool) -> bool:
    if wanted:
        print(f"headwise {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """How many attention heads, of what rank, does this Transformer need on this data?

    Start with headwise advise. Exit codes: 0 done; 1 a problem with a file, the data or the
    machine; 2 wrong usage; 130 stopped by Ctrl-C.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with 0, 1, 2 or 130."""
    open_closed_streams()
    print_in_any_encoding()
    stdout = sys.stdout
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        close_quietly(stdout)
        code = 0
    except OSError as error:
        if not is_of_stream(error):
            raise
        close_quietly(stdout)
        complain(f"the output cannot be written ({error.strerror}); send it elsewhere")
        code = 1
    except SystemExit as left:
        # typer exits with 1 when the reader of a pipe is gone, and replaces the stream.
        code = left.code if sys.stdout is stdout else 0
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run one verb; each error becomes one line, and any error after Ctrl-C is a stop."""
    with noted_interrupts() as interrupted:
        try:
            return _answered(arguments)
        except Exception:
            if not interrupted():
                raise
            complain("stopped")
            return 130


def _answered(arguments: list[str]) -> int:
    try:
        # Without its standalone mode typer leaves the errors to us.
        code = app(arguments or ["--help"], prog_name="headwise", standalone_mode=False)
        return (code or 0) if arguments else 2
    except StoppedError as error:
        complain(spoken(str(error), "command"))
        return 130  # what shells report of a command that Ctrl-C ended
    except HeadwiseError as error:
        complain(spoken(str(error), "command"))
        return 2 if isinstance(error, ParameterError) else 1
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return 130
    except typer.TyperException as error:
        complain(
            _renamed(error) or _plain(error.format_message()) + _where_to_read(error, arguments)
        )
        return error.exit_code


def _renamed(error: typer.TyperException) -> str:
    """Say what an option is called now; empty for other errors."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", "")
    now = RENAMED.get((getattr(context, "info_name", ""), option))
    return "" if now is None else f"expected {now} for the report, got {option}; pass {now}"


def _plain(message: str) -> str:
    """What typer says, without what it says about its own workings."""
    return message.replace("Value error, ", "").rstrip(".")


def _where_to_read(error: typer.TyperException, arguments: list[str]) -> str:
    """Point to the help of the verb; our own usage errors already say what to do."""
    context = getattr(error, "ctx", None)
    if context is None:
        # Typer does not say of which verb an option lacks its value.
        lacks_value = type(error).__name__ == "BadOptionUsage"
        return f"; see headwise {arguments[0]} --help" if lacks_value else ""
    end = "" if error.format_message().endswith("?") else ";"
    return f"{end} see {context.command_path} --help"
