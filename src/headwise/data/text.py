"""Text as token ids: characters, words, or a Hugging Face tokenizer file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from headwise.errors import BadInputError, UnreadableFileError, needs_extra
from headwise.shapes import Int

Level = Literal["character", "word"]
Encode = Callable[[str], Int[Tensor, " n"]]

#: A word, or a single mark that is neither a word nor a space.
_WORD = re.compile(r"\w+|[^\w\s]")

#: Words kept in a vocabulary; rarer ones share the id 0.
MOST_WORDS = 20_000


@dataclass(frozen=True)
class Vocabulary:
    """Symbols by id, the most frequent first; id 0 stands for every other symbol.

    Args:
        level: "character" or "word".
        symbols: The symbols, from id 1 on.

    Example:
        >>> words = Vocabulary.of("the cat and the dog", level="word")
        >>> words.encode("the cow").tolist(), words.size
        ([1, 0], 5)
    """

    level: Level
    symbols: tuple[str, ...]

    @classmethod
    def of(cls, text: str, level: Level) -> Vocabulary:
        """The vocabulary of a text."""
        counted = Counter(_symbols(text, level))
        # Ties in the order of the alphabet: the same text gives the same ids everywhere.
        ordered = sorted(counted, key=lambda symbol: (-counted[symbol], symbol))
        return cls(level, tuple(ordered[:MOST_WORDS]))

    @property
    def size(self) -> int:
        """How many ids there are, the one for other symbols included."""
        return len(self.symbols) + 1

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each symbol."""
        return {symbol: number for number, symbol in enumerate(self.symbols, 1)}

    def encode(self, text: str) -> Int[Tensor, " n"]:
        """The ids of a text."""
        found = [self.ids.get(symbol, 0) for symbol in _symbols(text, self.level)]
        return torch.tensor(found, dtype=torch.int64)


def encode_all(encode: Encode, texts: Sequence[str], length: int) -> tuple[Tensor, Tensor]:
    """The ids of many texts, each cut to its first and last ``length / 2``.

    Returns:
        The ids (texts, length), filled up with 0, and how many of each row are real, at least 1.

    Example:
        >>> words = Vocabulary.of("a b c d e", level="word")
        >>> encode_all(words.encode, ["a b c d e", "e"], length=4)[0].tolist()
        [[1, 2, 4, 5], [5, 0, 0, 0]]
    """
    rows = torch.zeros(len(texts), length, dtype=torch.int64)
    lengths = torch.ones(len(texts), dtype=torch.int64)
    for row, text in enumerate(texts):
        ids = encode(text)
        if len(ids) > length:
            ids = torch.cat([ids[: length - length // 2], ids[len(ids) - length // 2 :]])
        rows[row, : len(ids)] = ids
        lengths[row] = max(1, len(ids))
    return rows, lengths


def encoder_of(text: str, tokenizer: str) -> tuple[Encode, int]:
    """Encode as ``tokenizer`` says: "character", "word" or the path of a tokenizer.json.

    Returns:
        A function from text to ids, and the number of ids; symbols are numbered as in ``text``.
    """
    if tokenizer not in ("character", "word"):
        return tokenizer_file(tokenizer)
    found = Vocabulary.of(text, tokenizer)
    return found.encode, found.size


def _symbols(text: str, level: Level) -> Sequence[str]:
    if level == "character":
        return text
    if level == "word":
        return _WORD.findall(text.lower())
    raise BadInputError(
        f"there is no tokenizer called {level!r}",
        hint="choose character, word, or a tokenizer.json file",
    )


def tokenizer_file(path: Path | str) -> tuple[Encode, int]:
    """Read a Hugging Face tokenizer.json. Needs the package tokenizers.

    Truncation, padding and special tokens that the file asks for are not applied.

    Args:
        path: The file.

    Returns:
        A function from text to ids, and the number of ids.

    Raises:
        UnreadableFileError: If the file is missing or damaged.
        MissingExtraError: If tokenizers is not installed.

    Example:
        >>> import tempfile
        >>> from tokenizers import Tokenizer, models
        >>> place = f"{tempfile.mkdtemp()}/tokenizer.json"
        >>> Tokenizer(models.WordLevel({"yes": 0, "no": 1}, unk_token="no")).save(place)
        >>> encode, size = tokenizer_file(place)
        >>> encode("yes").tolist(), size
        ([0], 2)
    """  # noqa: DOC501
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise needs_extra("tokenizers", "hub") from None
    # The reader raises a bare Exception for anything that is wrong with the file.
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:
        raise UnreadableFileError(
            f"{path} is not a tokenizer file", hint="pass a tokenizer.json, or character or word"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str) -> Tensor:
        # As for the file: a vocabulary without its own unknown token fails only here. A pattern
        # that takes too many steps ends in a panic of Rust, which is no Exception.
        try:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            why = " ".join(str(error).split())
            raise UnreadableFileError(
                f"{path} cannot encode the text ({why})", hint="pass another tokenizer.json"
            ) from None
        return torch.tensor(ids, dtype=torch.int64)

    return encode, tokenizer.get_vocab_size()


def read_text(path: Path | str) -> str:
    """Read a text file in UTF-8.

    Args:
        path: The file.

    Returns:
        The whole content of the file as one string.

    Raises:
        BadInputError: If it is empty or not UTF-8.
        UnreadableFileError: If it cannot be read.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "note.txt"
        >>> _ = place.write_text("two words")
        >>> read_text(place)
        'two words'
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be opened ({error.strerror})", hint="check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise UnreadableFileError(f"{path} is not UTF-8 text", hint="save it as UTF-8") from None
    if not text.strip():
        raise BadInputError(f"{path} holds no text", hint="pass a file with words in it")
    return text


def windows(ids: Int[Tensor, " n"], length: int, most: int = 256) -> Int[Tensor, "b length"]:
    """Cut up to ``most`` windows of ``length`` ids at equal distances through a text.

    Args:
        ids: The ids of the text.
        length: The length of a window.
        most: The most windows.

    Returns:
        Ids (b, length), one window in each row, with b at most ``most``.

    Raises:
        BadInputError: If the text is shorter than one window.

    Example:
        >>> windows(torch.arange(10), 4).tolist()
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    whole = len(ids) // length
    if whole == 0:
        raise BadInputError(
            f"the text has {len(ids)} tokens, sequences of {length} were asked for",
            hint=f"pass a length of at most {len(ids)}, or a longer text",
        )
    rows = ids[: whole * length].reshape(whole, length)
    if whole <= most:
        return rows
    return rows[torch.arange(most) * whole // most]
