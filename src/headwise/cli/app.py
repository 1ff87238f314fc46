"""The headwise command: its verbs, and how an error becomes one line and an exit code."""

from __future__ import annotations

import sys

import typer

from headwise import __version__
from headwise.errors import HeadwiseError

app = typer.Typer(
    name="headwise",
    help="How many attention heads, of what rank, does this Transformer need on this data?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headwise {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """How many attention heads, of what rank, does this Transformer need on this data?"""


def main() -> None:
    """Run the command: exit 0 when well, 1 for a domain error, 2 for wrong usage."""
    try:
        app()
    except HeadwiseError as error:
        typer.echo(f"headwise: {error}", err=True)
        sys.exit(1)
