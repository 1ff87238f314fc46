"""Ask for advice from the page: read what was dropped, measure once, answer many times."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.checks import quantity
from headwise.errors import BadInputError, HeadwiseError, UnreadableFileError
from headwise.faces import spoken
from headwise.progress import Progress

if TYPE_CHECKING:  # torch takes seconds to import, and the first page must not wait for it
    from headwise.advice import Advice
    from headwise.advice.render.document import Detail

#: Measurements that are kept, so that sliders need no second one.
KEPT = 16

#: The most files that are read at once.
MOST_FILES = 256

#: The name of a file of tokens or text while it is read.
DROPPED = "dropped"

#: What the sliders and fields may set.
LIMITS = ("task", "params", "kv_bytes", "heads", "rank", "multiple_of", "need", "any_shape")
READING = ("length", "width", "patch", "size", "tokenizer", "mask")

#: Values that a command or a call need not name.
DEFAULTS = {"multiple_of": 1, "any_shape": False, "need": "data"}


@dataclass(frozen=True)
class Upload:
    """A file that was dropped: its name, and where its bytes lie under a name of our own."""

    name: str
    place: Path

    @property
    def suffix(self) -> str:
        """The ending, in small letters."""
        return Path(self.name).suffix.lower()


@dataclass(frozen=True)
class Asked:
    """An answer that is kept, and how it was asked: the config, the file, how it was read."""

    advice: Advice
    config: dict[str, Any] | None
    source: str | None
    reading: dict[str, Any]


class Asking:
    """Answers, kept by key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Asked] = OrderedDict()
        self._lock = threading.Lock()

    def first(
        self, key: str, files: list[Upload], given: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Measure what was dropped, or use the law, and answer."""
        from headwise.advice import advise

        chosen = {name: given[name] for name in (*LIMITS, *READING) if given.get(name) is not None}
        chosen |= {n: quantity(f"`{n}`", chosen[n]) for n in ("length", "width") if n in chosen}
        with tempfile.TemporaryDirectory(prefix="headwise-page-") as folder:
            source, config = _laid_out(files, Path(folder))
            try:
                advice = advise(source, config=config, progress=progress, **chosen)
            except (BadInputError, UnreadableFileError) as error:
                raise _renamed(error, files, Path(folder)) from None
        name = None if source is None else _name_of(files)
        if name is not None:
            advice = replace(advice, evidence=replace(advice.evidence, source=name))
        asked = Asked(advice, config, name, {n: chosen[n] for n in READING if n in chosen})
        with self._lock:
            self._kept[key] = asked
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return _answer(key, asked, chosen)

    def another(self, key: str, given: dict[str, Any]) -> dict[str, Any]:
        """Answer with other limits, from the same measurement."""
        from headwise.advice.advisor import again

        kept = self._kept.get(key)
        if kept is None:
            raise BadInputError("these measurements are gone", hint="drop the file again")
        chosen = {name: given[name] for name in LIMITS if given.get(name) is not None}
        found = replace(kept, advice=again(kept.advice, config=kept.config, **chosen))
        return _answer(key, found, {**kept.reading, **chosen})


def _answer(key: str, asked: Asked, chosen: dict[str, Any]) -> dict[str, Any]:
    """The answer as the page shows it, with what its buttons copy."""
    advice, form = asked.advice, _form(asked.advice)
    told = {name: value for name, value in chosen.items() if DEFAULTS.get(name) != value}
    return {
        "key": key,
        **advice.as_json(),
        **_words(advice),
        "copy": {
            "layer": _exported(advice, "torch"),
            "config": _exported(advice, form),
            "command": command(asked, told),
            "python": call(asked, told),
        },
        "remarks": {"config": _remarks(advice, form)},
    }


def _words(advice: Advice) -> dict[str, Any]:
    """What every other face shows, with the page's own fields for parameters."""
    from headwise.advice.render.document import document

    shown = document(advice, "page")
    return {
        "question": shown.question,
        "answer": shown.headline,
        "reasons": shown.reasons,
        "caveat": spoken(shown.caveat, "page"),
        "table": {"columns": shown.table.columns, "rows": shown.table.rows},
        "costs": {"columns": shown.costs.columns, "rows": shown.costs.rows},
        "legend": shown.legend,
        "findings": [_detail(one) for one in shown.details],
        "curve_notes": shown.curve_notes,
    }


def _detail(one: Detail) -> dict[str, Any]:
    """A finding with the columns and rows of its table."""
    table = None if one.table is None else {"columns": one.table.columns, "rows": one.table.rows}
    return {"label": one.label, "words": one.words, "table": table}


def _form(advice: Advice) -> Any:
    """The kind of config that has this mask and this kind of attention."""
    from headwise.geometry import LatentGeometry

    if isinstance(advice.best.geometry, LatentGeometry):
        return "deepseek_v3"
    return "bert" if advice.evidence.mask == "none" else "qwen3"


def _exported(advice: Advice, form: Any) -> str:
    try:
        return advice.export(form)
    except HeadwiseError as error:
        return f"# {spoken(str(error), 'page')}"


def _remarks(advice: Advice, form: Any) -> str:
    """What to check in the config: values that nobody gave, and a class that is a guess."""
    from headwise.advice.export import remarks

    found = remarks(advice, form)
    if advice.question.task == "unknown":
        found.append("no task was given, so the class is a guess")
    words = "; ".join(found)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def command(asked: Asked, chosen: dict[str, Any]) -> str:
    """The command that gives the same answer."""
    words = ["headwise", "advise"]
    if asked.source is not None:
        words.append(shlex.quote(asked.source))
    if asked.config is not None:
        words += ["--config", "config.json"]
    for name, value in chosen.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, shlex.quote(str(value))]
    return " ".join(words)


def call(asked: Asked, chosen: dict[str, Any]) -> str:
    """The Python call that gives the same answer."""
    given = [] if asked.source is None else [repr(asked.source)]
    if asked.config is not None:
        given.append("config='config.json'")
    given += [f"{name}={value!r}" for name, value in chosen.items()]
    return f"import headwise\n\nprint(headwise.advise({', '.join(given)}))"


def _name_of(files: list[Upload]) -> str:
    """What the command and Python call the data: the file, or the folder of images."""
    names = [file.name for file in files if file.suffix != ".json"]
    return names[0] if len(names) == 1 else "FOLDER"


def _laid_out(files: list[Upload], folder: Path) -> tuple[Any, dict[str, Any] | None]:
    """Write what was dropped under names of our own, and say what it is."""
    from headwise.data.images import PICTURES
    from headwise.endings import ARRAYS, TEXTS

    if len(files) > MOST_FILES:
        raise BadInputError(
            f"expected at most {MOST_FILES} files, got {len(files)}", hint="drop fewer"
        )
    configs = [file for file in files if file.suffix == ".json"]
    others = [file for file in files if file.suffix != ".json"]
    config = _config(configs[0]) if configs else None
    if not others:
        return None, config
    if len(others) > 1 and all(file.suffix in PICTURES for file in others):
        for number, file in enumerate(others):
            file.place.rename(folder / f"{number:06d}{file.suffix}")
        return folder, config
    if len(others) > 1:
        raise BadInputError(
            f"expected one file of tokens or text, got {len(others)}", hint="drop one, or images"
        )
    (only,) = others
    if only.suffix not in (*ARRAYS, *TEXTS, *PICTURES):
        raise BadInputError(
            f"{only.name} is of no kind that can be read",
            hint=f"drop a config.json, images, or one of {' '.join((*ARRAYS, *TEXTS))}",
        )
    path = folder / f"{DROPPED}{only.suffix}"
    only.place.rename(path)
    return path, config


def _renamed(error: HeadwiseError, files: list[Upload], folder: Path) -> BadInputError:
    """The same error with the names that the reader knows."""
    problem = error.problem.replace(f"{folder}{os.sep}", "")
    others = [file for file in files if file.suffix != ".json"]
    for number, file in enumerate(others):
        for own in (f"{DROPPED}{file.suffix}", f"{number:06d}{file.suffix}"):
            problem = problem.replace(own, file.name)
    return BadInputError(problem.replace(str(folder), "the folder"), hint=error.hint)


def _config(file: Upload) -> dict[str, Any]:
    from headwise.hugging_face.config import where_not_json

    try:
        found = json.loads(file.place.read_bytes())
    except (ValueError, RecursionError) as error:
        where = where_not_json(error)
        raise BadInputError(f"{file.name} is not JSON{where}", hint="drop a config.json") from None
    if not isinstance(found, dict):
        raise BadInputError(
            f"expected an object in {file.name}, got {type(found).__name__}",
            hint="drop a config.json",
        )
    return found
