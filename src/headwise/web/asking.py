"""Ask for advice from the page: read what was dropped, measure once, answer many times."""

from __future__ import annotations

import json
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.advice import Advice, advise
from headwise.advice.advisor import again
from headwise.errors import BadInputError, HeadwiseError
from headwise.progress import Progress

#: Measurements that are kept, so that sliders need no second one.
KEPT = 16

#: What a file may be: its ending decides how it is read.
ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
MOST_FILES = 256

#: What the sliders and fields may set.
LIMITS = ("task", "params", "kv_bytes", "heads", "rank", "multiple_of", "need", "any_shape")
READING = ("length", "width", "patch", "size", "tokenizer", "mask")


@dataclass(frozen=True)
class Upload:
    """A file that was dropped: its name and its bytes."""

    name: str
    content: bytes

    @property
    def suffix(self) -> str:
        """The ending, in small letters."""
        return Path(self.name).suffix.lower()


@dataclass(frozen=True)
class Asked:
    """An answer that is kept, with the config that it was given and how to ask in the command."""

    advice: Advice
    config: dict[str, Any] | None
    source: str | None


class Asking:
    """Answers, kept by key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Asked] = OrderedDict()
        self._lock = threading.Lock()

    def first(
        self, key: str, files: list[Upload], given: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Measure what was dropped, or use the law, and answer."""
        chosen = {name: given[name] for name in (*LIMITS, *READING) if given.get(name) is not None}
        with tempfile.TemporaryDirectory(prefix="headwise-page-") as folder:
            source, config = _laid_out(files, Path(folder))
            advice = advise(source, config=config, progress=progress, **chosen)
        name = None if source is None else files[0].name if len(files) == 1 else "FOLDER"
        with self._lock:
            self._kept[key] = Asked(advice, config, name)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._shown(key, chosen)

    def another(self, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Answer with other limits, from the same measurement."""
        kept = self._kept.get(key)
        if kept is None:
            raise BadInputError("these measurements are gone", hint="drop the file again")
        chosen = {name: given[name] for name in LIMITS if given.get(name) is not None}
        found = Asked(again(kept.advice, config=kept.config, **chosen), kept.config, kept.source)
        return _answer(key, found, chosen)

    def _shown(self, key: str, chosen: dict[str, Any]) -> dict[str, Any]:
        return _answer(key, self._kept[key], chosen)


def _answer(key: str, asked: Asked, chosen: dict[str, Any]) -> dict[str, Any]:
    """The answer as the page shows it, with what its buttons copy."""
    advice = asked.advice
    return {
        "key": key,
        **advice.as_json(),
        "copy": {
            "layer": _exported(advice, "torch"),
            "config": _exported(advice, "bert" if advice.evidence.mask == "none" else "qwen3"),
            "command": command(asked, chosen),
            "python": call(asked, chosen),
        },
    }


def _exported(advice: Advice, form: Any) -> str:
    try:
        return advice.export(form)
    except HeadwiseError as error:
        return f"# {error}"


def command(asked: Asked, chosen: dict[str, Any]) -> str:
    """The command that gives the same answer."""
    words = ["headwise", "advise"]
    if asked.source is not None:
        words.append(_quoted(asked.source))
    if asked.config is not None:
        words += ["--config", "config.json"]
    for name, value in chosen.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [] if value is False else [option, str(value)]
    return " ".join(words)


def call(asked: Asked, chosen: dict[str, Any]) -> str:
    """The Python call that gives the same answer."""
    given = [] if asked.source is None else [repr(asked.source)]
    if asked.config is not None:
        given.append("config='config.json'")
    given += [f"{name}={value!r}" for name, value in chosen.items()]
    return f"import headwise\n\nheadwise.advise({', '.join(given)})"


def _quoted(name: str) -> str:
    import shlex

    return shlex.quote(name)


def _laid_out(files: list[Upload], folder: Path) -> tuple[Any, dict[str, Any] | None]:
    """Write what was dropped under names of our own, and say what it is."""
    if len(files) > MOST_FILES:
        raise BadInputError(
            f"expected at most {MOST_FILES} files, got {len(files)}", hint="drop fewer"
        )
    configs = [file for file in files if file.suffix == ".json"]
    others = [file for file in files if file.suffix != ".json"]
    config = _config(configs[0]) if configs else None
    if not others:
        return None, config
    if all(file.suffix in PICTURES for file in others):
        for number, file in enumerate(others):
            (folder / f"{number:06d}{file.suffix}").write_bytes(file.content)
        return folder, config
    if len(others) > 1:
        raise BadInputError(
            f"expected one file of tokens or text, got {len(others)}", hint="drop one, or images"
        )
    (only,) = others
    known = only.suffix if only.suffix in ARRAYS else ".txt"
    path = folder / f"dropped{known}"
    path.write_bytes(only.content)
    return path, config


def _config(file: Upload) -> dict[str, Any]:
    try:
        found = json.loads(file.content)
    except (ValueError, RecursionError):
        raise BadInputError(f"{file.name} is not JSON", hint="drop a config.json") from None
    if not isinstance(found, dict):
        raise BadInputError(
            f"expected an object in {file.name}, got {type(found).__name__}",
            hint="drop a config.json",
        )
    return found
