"""``python -m headwise`` is the headwise command."""

from headwise.cli.app import main

if __name__ == "__main__":
    main()
