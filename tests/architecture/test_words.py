"""Pages, docstrings and messages avoid archaic words, which readers stumbled over."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Each of these made readers read a sentence twice. docs/writing.md says what to write instead.
ARCHAIC = re.compile(
    r"\b(whoever|whomever|be they|dearer|dearest|none later|lest|thereof|therein|thereby|whereby"
    r"|wherein|whence|hither|thither|amongst|whilst|nought|naught|betwixt|fared|afresh|anew"
    r"|(?:has|have|had) (?:a|no) words? for|(?:is|are|be) told(?! apart)|for want of"
    r"|(?:learnt|learn|learned) by heart|in vain|(?:is|are) said of|said where"
    r"|becomes? of (?:a|the|it|them)|come of it|own start"
    r"|(?:of|by) (?:its|their|his) own(?! [a-z])|by two roads|may be believed)\b",
    re.IGNORECASE,
)

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
    assert archaic("Plain.\nWhoever reads this is\ntold a riddle.") == [
        "2: Whoever reads this is",
    ]
    assert archaic("It has no word\nfor 7 heads") == ["1: It has no word"]
    assert archaic("Each layer has its own stream; a told story; lesson") == []


def test_texts_are_found():
    names = {path.name for path in texts()}
    assert {"README.md", "log.md", "masks.py", "dominant.c", "Makefile"} <= names
