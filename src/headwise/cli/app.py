"""The headwise command: its verbs, and how an error becomes one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from headwise.cli.advise import advise
from headwise.cli.bound import bound
from headwise.cli.console import complain
from headwise.cli.demo import demo
from headwise.cli.law import law
from headwise.cli.rank import rank
from headwise.cli.report import report
from headwise.cli.reproduce import reproduce
from headwise.errors import HeadwiseError, StoppedError
from headwise.version import __version__

app = typer.Typer(
    name="headwise",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("advise")(advise)
app.command("rank")(rank)
app.command("law")(law)
app.command("bound")(bound)
app.command("reproduce")(reproduce)
app.command("report")(report)
app.command("demo")(demo)


def _show_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"headwise {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """How many attention heads, of what rank, does this Transformer need on this data?"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command: exit 0 when well, 1 domain error, 2 wrong usage, 130 when stopped."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        # Without its standalone mode typer leaves the errors to us: each becomes one line.
        code = app(given or ["--help"], prog_name="headwise", standalone_mode=False)
        code = code if given else 2
    except StoppedError as error:
        complain(str(error))
        code = 130  # what shells report of a command that Ctrl-C ended
    except HeadwiseError as error:
        complain(str(error))
        code = 1
    except typer.TyperException as error:
        complain(error.format_message() + _where_to_read(error))
        code = error.exit_code
    sys.exit(code)


def _where_to_read(error: typer.TyperException) -> str:
    """The help of the verb in question; our own usage errors already say what would work."""
    context = getattr(error, "ctx", None)
    return f"; {context.command_path} --help shows what works" if context else ""
