"""``headwise`` and ``python -m headwise``: the command, also while it is still loading."""

import sys


def main() -> None:
    """Run the command. Ctrl-C while it loads ends it in one line too."""
    try:
        from headwise.cli.app import main as command
    except KeyboardInterrupt:
        print("headwise: stopped", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
