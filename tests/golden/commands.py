"""The commands whose answers are kept, and how to ask for them again.

Run ``python tests/golden/commands.py`` to write the answers again. Do that only when an answer is
meant to change, and say why in the commit.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headwise.cli.app import main as command

HERE = Path(__file__).parent
ANSWERS = HERE / "answers"
INPUTS = HERE / "inputs"

#: Name of the answer -> arguments of ``headwise``, which runs in the folder ``inputs``.
COMMANDS: dict[str, list[str]] = {
    "rank_queries": ["rank", "--queries", "q.npy", "--keys", "k.npy"],
    "rank_causal": [
        *("rank", "--queries", "q.npy", "--keys", "k.npy"),
        *("--mask", "causal"),
    ],
    "rank_matrix": ["rank", "a.npy"],
    "rank_float32": ["rank", "a32.npy"],
    "rank_relative": ["rank", "a.npy", "--tolerance", "relative:0.01"],
    "law": ["law", "--length", "1024"],
    "law_causal": ["law", "--length", "256", "--mask", "causal"],
    "bound_heads": ["bound", "--width", "64", "--rank", "8", "--error", "0.1"],
    "bound_error": ["bound", "--width", "64", "--rank", "16", "--heads", "4"],
    "advise_digits": ["advise", "--any-shape"],
    "advise_numbers": ["advise", "--any-shape", "--length", "512", "--width", "768"],
    "advise_gpt2": ["advise", "--any-shape", "--config", "gpt2.json"],
    "advise_llama": ["advise", "--any-shape", "--config", "llama.json"],
    "advise_bert": ["advise", "--any-shape", "--config", "bert.json"],
}

#: Exhibits drawn from the rows that come with the package, without computing anything.
EXHIBITS = ["rank2026/table_1", "rank2026/table_2", "heads2024/figure_rank_depth"]


def ask(arguments: list[str]) -> object:
    """The answer of one command, as JSON.

    Args:
        arguments: What stands behind ``headwise`` on the command line, without ``--json``.

    Returns:
        The parsed answer.
    """
    printed = io.StringIO()
    with contextlib.chdir(INPUTS), contextlib.redirect_stdout(printed):
        try:
            command([*arguments, "--json"])
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"headwise {arguments} ended with {end.code}") from end
    return json.loads(printed.getvalue())


def ask_exhibit(name: str) -> object:
    """Draw an exhibit from the rows that come with the package.

    Args:
        name: An exhibit such as ``rank2026/table_1``.

    Returns:
        The parsed answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        return ask(["reproduce", name, "--from-records", "--out", folder])


def all_answers() -> dict[str, Callable[[], object]]:
    """Every kept answer, by its name, as a call that asks for it again."""
    found: dict[str, Callable[[], object]] = {
        name: partial(ask, arguments) for name, arguments in COMMANDS.items()
    }
    for name in EXHIBITS:
        found[f"reproduce_{name.replace('/', '_')}"] = partial(ask_exhibit, name)
    return found


def main() -> None:
    """Write every answer."""
    ANSWERS.mkdir(exist_ok=True)
    for name, question in all_answers().items():
        text = json.dumps(question(), indent=1, ensure_ascii=False)
        (ANSWERS / f"{name}.json").write_text(text + "\n")
        print(name)


if __name__ == "__main__":
    main()
