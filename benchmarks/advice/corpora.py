"""Token files for the language tasks: prose, source code, and a class for each code token.

    python -m benchmarks.advice.corpora --imdb FOLDER --out local/language

``FOLDER`` holds ``aclImdb/``. Source code is the standard library of the running Python. Each
corpus gets a byte-level BPE of 4,096 tokens, trained on its training part. Making the files needs
the package ``tokenizers``; reading them needs numpy alone.
"""

from __future__ import annotations

import argparse
import io
import keyword
import lzma
import sysconfig
import tokenize
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headwise.errors import UnreadableFileError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Size of each vocabulary. The id 0 separates documents.
VOCABULARY = 4096
SEPARATOR = 0

#: Tokens kept of each corpus. Both files together stay below 20 MiB.
TRAINED = {"prose": 15_000_000, "code": 8_000_000}
HELD_OUT = 200_000

#: Classes of code tokens. White space and all else that Python's tokenizer skips is "other".
CLASSES = ("other", "keyword", "name", "number", "string", "comment", "operator")


def read_corpus(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Read the arrays of one corpus: ``train`` and ``test`` ids, for code also their classes."""
    path = folder / f"{name}.npz.xz"
    if not path.exists():
        raise UnreadableFileError(
            f"expected the token file {path}, found none",
            hint="make it with python -m benchmarks.advice.corpora",
        )
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
        return dict(stored)


def write_corpus(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> Path:
    """Write the arrays of one corpus as a compressed file."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    path = folder / f"{name}.npz.xz"
    path.write_bytes(lzma.compress(packed.getvalue(), preset=4))
    return path


def reviews(folder: Path) -> tuple[list[str], list[str]]:
    """The IMDB reviews of the training part and of the test part, shuffled."""
    return _texts(folder / "aclImdb" / "train"), _texts(folder / "aclImdb" / "test")


def _texts(folder: Path) -> list[str]:
    paths = sorted(folder.glob("*/*.txt"))
    order = np.random.default_rng(0).permutation(len(paths))
    return [paths[number].read_text(encoding="utf-8").replace("<br />", "\n") for number in order]


def python_files(folder: Path) -> tuple[list[str], list[str]]:
    """The library's Python files in two parts; a checksum of the path decides which.

    Files that Python's tokenizer refuses are left out.
    """
    parts: tuple[list[str], list[str]] = ([], [])
    paths = [path for path in folder.rglob("*.py") if "site-packages" not in path.parts]
    for path in sorted(paths, key=lambda path: _checksum(path, folder)):
        try:
            text = path.read_text(encoding="utf-8")
            code_classes(text)
        except (UnicodeDecodeError, SyntaxError, tokenize.TokenError):
            continue
        parts[_checksum(path, folder) % 12 == 0].append(text)
    return parts


def _checksum(path: Path, folder: Path) -> int:
    return zlib.crc32(str(path.relative_to(folder)).encode())


def code_classes(text: str) -> np.ndarray:
    """The class of every character of a Python file."""
    starts = np.cumsum([0, *(len(line) for line in io.StringIO(text))])
    classes = np.zeros(len(text), dtype=np.uint8)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first = starts[token.start[0] - 1] + token.start[1]
        last = starts[min(token.end[0], len(starts)) - 1] + token.end[1]
        classes[first:last] = CLASSES.index(_class_of(token))
    return classes


def _class_of(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "keyword" if keyword.iskeyword(token.string) else "name"
    known = {
        tokenize.NUMBER: "number",
        tokenize.STRING: "string",
        tokenize.COMMENT: "comment",
        tokenize.OP: "operator",
    }
    return known.get(token.type, "other")


def trained_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Train a byte-level BPE of ``VOCABULARY`` tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<end>"],
        initial_alphabet=letters,
        show_progress=False,
    )
    found.train_from_iterator(texts, trainer)
    return found


def encoded(tokenizer: Tokenizer, texts: list[str], most: int) -> np.ndarray:
    """The first ``most`` ids of the texts, each text followed by the separator."""
    parts, total = [], 0
    for first in range(0, len(texts), 256):
        for one in tokenizer.encode_batch(texts[first : first + 256]):
            parts.append(np.array([*one.ids, SEPARATOR], dtype=np.uint16))
            total += len(parts[-1])
        if total >= most:
            break
    return np.concatenate(parts)[:most]


def classes_of_tokens(tokenizer: Tokenizer, texts: list[str], most: int) -> np.ndarray:
    """The class of each id that ``encoded`` gives: that of its last character."""
    parts, total = [], 0
    for text in texts:
        of_letters = code_classes(text)
        ends = [end for _, end in tokenizer.encode(text).offsets]
        parts.append(np.append(of_letters[np.array(ends, dtype=np.int64) - 1], 0))
        total += len(parts[-1])
        if total >= most:
            break
    return np.concatenate(parts)[:most].astype(np.uint8)


def prose(folder: Path) -> dict[str, np.ndarray]:
    """Ids of the reviews."""
    trained, held_out = reviews(folder)
    tokenizer = trained_tokenizer(trained[:8_000])
    return {
        "train": encoded(tokenizer, trained + held_out[2_000:], TRAINED["prose"]),
        "test": encoded(tokenizer, held_out[:2_000], HELD_OUT),
    }


def code(folder: Path) -> dict[str, np.ndarray]:
    """Ids of the Python files and the class of each."""
    trained, held_out = python_files(folder)
    tokenizer = trained_tokenizer(trained)
    found = {}
    for part, texts, most in (
        ("train", trained, TRAINED["code"]),
        ("test", held_out, HELD_OUT),
    ):
        found[part] = encoded(tokenizer, texts, most)
        found[f"{part}_classes"] = classes_of_tokens(tokenizer, texts, most)
    return found


def main() -> None:
    """Make both token files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--imdb", type=Path, required=True, help="folder that holds aclImdb/")
    parser.add_argument("--out", type=Path, default=Path("local/language"))
    given = parser.parse_args()
    library = Path(sysconfig.get_paths()["stdlib"])
    for name, make, folder in (("prose", prose, given.imdb), ("code", code, library)):
        arrays = make(folder)
        path = write_corpus(given.out, name, arrays)
        sizes = ", ".join(f"{part} {len(ids):,}" for part, ids in arrays.items())
        print(f"{path.name}: {sizes}; {path.stat().st_size / 2**20:.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
