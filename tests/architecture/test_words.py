"""Pages, docstrings and messages avoid archaic words, which readers stumbled over."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Patterns, one a line. Each made readers read a sentence twice; docs/writing.md says what to
#: write instead.
LIST = Path(__file__).with_name("archaic_words.txt").read_text().split("\n")
ARCHAIC = re.compile(rf"\b({'|'.join(filter(None, LIST))})\b", re.IGNORECASE)

#: Files that quote such words, or that are made by programs.
EXEMPT = {"docs/writing.md", "tests/architecture/test_words.py", "tests/cli/test_advise.py"}


def texts() -> list[Path]:
    patterns = ["*.py", "*.md", "*.c", "*.h", "*.html", "*.toml", "Makefile"]
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if name not in EXEMPT]


def archaic(text: str) -> list[str]:
    """Lines with an archaic word, numbered; a phrase may run over a line break."""
    flat = text.replace("\n", " ")
    found = (match.start() for match in ARCHAIC.finditer(flat))
    lines = sorted({text.count("\n", 0, place) for place in found})
    return [f"{line + 1}: {text.splitlines()[line].strip()}" for line in lines]


def test_no_text_uses_archaic_words():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in texts()
        if path.exists() and (lines := archaic(path.read_text()))
    }
    assert not found


def test_archaic_words_are_noticed():
    planted = LIST[0].capitalize()
    assert archaic(f"Plain.\n{planted} reads\nthis.") == [f"2: {planted} reads"]
    assert archaic("It has no word\nfor 7 heads") == ["1: It has no word"]
    assert archaic("Each layer has its own stream; a told story; lesson") == []


def test_texts_are_found():
    names = {path.name for path in texts()}
    assert {"README.md", "log.md", "mask_names.py", "dominant.c", "Makefile"} <= names
