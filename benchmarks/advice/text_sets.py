"""Labelled texts that any Debian machine and any installation of Python packages have.

``package-sections``: the section (games, net, science …) of a Debian package, from the first words
of its description. Packages of one source are all trained on or all held out.

``code-libraries``: the library that 128 words of source code come from. A file is trained on or
held out as a whole.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

#: Words of a text that are kept, and words in the vocabulary (padding and "other" included).
SECTION_LENGTH, CODE_LENGTH, VOCABULARY = 96, 128, 8_000
PADDING, OTHER = 0, 1

#: Sections that name a subject. Those of a language or a form ("perl", "libdevel") are in the text.
SECTIONS = (
    *("admin", "comm", "database", "editors", "electronics", "fonts", "games", "gnome"),
    *("graphics", "hamradio", "httpd", "kde", "mail", "math", "net", "science", "sound"),
    *("text", "utils", "vcs", "video", "web", "x11"),
)

#: Libraries told apart, and how many pieces of each are kept at most.
LIBRARIES = (
    *("dask", "matplotlib", "networkx", "numpy", "pandas"),
    *("scipy", "sqlalchemy", "sympy", "torch", "transformers"),
)
PIECES = 1_600

#: One group of texts in so many is held out.
HELD_OUT_SHARE = 7

_WORD = re.compile(r"[a-z0-9']+")

#: The words of a text, and its label.
Labelled = tuple[list[str], int]


def words_of(text: str) -> list[str]:
    """The words of a text, without capitals and punctuation.

    >>> words_of("It's 2 A.D.")
    ["it's", '2', 'a', 'd']
    """
    return _WORD.findall(text.lower())


def vocabulary_of(texts: Sequence[Labelled], size: int = VOCABULARY) -> dict[str, int]:
    """The numbers of the most frequent words; ties go by the alphabet."""
    counted = Counter(word for words, _ in texts for word in words)
    kept = sorted(counted, key=lambda word: (-counted[word], word))[: size - 2]
    return {word: number for number, word in enumerate(kept, OTHER + 1)}


def numbered(
    texts: Sequence[Labelled], numbers: dict[str, int], length: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first words of each text as numbers, and the labels."""
    ids = np.full((len(texts), length), PADDING, dtype=np.uint16)
    for row, (words, _) in zip(ids, texts, strict=True):
        found = [numbers.get(word, OTHER) for word in words[:length]]
        row[: len(found)] = found
    return ids, np.array([label for _, label in texts], dtype=np.uint8)


def package_sections(path: Path) -> tuple[list[Labelled], list[Labelled]]:
    """Descriptions and sections, for training and held out, from what ``apt-cache show`` prints."""
    kept: tuple[list[Labelled], list[Labelled]] = ([], [])
    for fields in _stanzas(path.read_text(encoding="utf-8", errors="replace")):
        section = fields.get("Section", "").rpartition("/")[2]
        if section in SECTIONS and "Description-en" in fields:
            source = fields.get("Source", fields["Package"]).partition(" ")[0]
            words = words_of(fields["Description-en"])
            kept[_is_held_out(source)].append((words, SECTIONS.index(section)))
    return kept


def code_libraries(folder: Path) -> tuple[list[Labelled], list[Labelled]]:
    """Pieces of source code and their library, from a ``site-packages`` folder."""
    kept: tuple[list[Labelled], list[Labelled]] = ([], [])
    for label, name in enumerate(LIBRARIES):
        pieces = [piece for path in _by_checksum(folder, name) for piece in _pieces(path, folder)]
        for held_out, words in pieces[:PIECES]:
            kept[held_out].append((words, label))
    return kept


def _by_checksum(folder: Path, library: str) -> list[Path]:
    return sorted((folder / library).rglob("*.py"), key=lambda path: _checksum(_name(path, folder)))


def _pieces(path: Path, folder: Path) -> Iterator[tuple[bool, list[str]]]:
    """Every second piece of a file, so that a long file does not fill its library."""
    words = words_of(path.read_text(encoding="utf-8", errors="replace"))
    held_out = _is_held_out(_name(path, folder))
    for first in range(0, len(words) - CODE_LENGTH + 1, 2 * CODE_LENGTH):
        yield held_out, words[first : first + CODE_LENGTH]


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _is_held_out(group: str) -> bool:
    return _checksum(group) % HELD_OUT_SHARE == 0


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """The fields of each paragraph; lines that begin with a space go on with the field above."""
    for paragraph in text.split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line.startswith(" "):
                fields[key] = f"{fields.get(key, '')}\n{line[1:]}"
            elif ":" in line:
                key, _, value = line.partition(":")
                fields[key] = value.strip()
        if "Package" in fields:
            yield fields
