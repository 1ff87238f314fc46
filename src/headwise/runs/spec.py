"""Spec: one question. Specs with the same content have the same key."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from headwise.errors import BadInputError

#: One row of an answer: names and values that JSON can write.
Row = dict[str, Any]


class Spec(BaseModel, frozen=True):
    """A question with everything its answer depends on, except where it is computed.

    A subclass is a kind of question: it names itself in ``kind`` and answers in ``ask``. Increase
    ``revision`` if the same fields would give another answer; stored answers of older revisions are
    then ignored.

    Example:
        >>> from typing import Literal
        >>> class Square(Spec, frozen=True):
        ...     kind: Literal["square"] = "square"
        ...     revision: Literal[1] = 1
        ...     number: float
        ...     def ask(self):
        ...         return {"square": self.number**2}
        >>> spec = Square(number=3)
        >>> spec.ask()
        {'square': 9.0}
        >>> spec.label
        'square number=3.0'
        >>> spec.key == Square.model_validate_json(spec.model_dump_json()).key
        True
    """

    # JSON has no infinity, so infinite numbers are refused.
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    kind: str
    revision: int

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for name in ("kind", "revision"):
            field = cls.model_fields[name]
            named = get_origin(field.annotation) is Literal and not field.is_required()
            if not named and not getattr(cls, "__abstractmethods__", None):
                raise TypeError(f"{cls.__name__} needs a {name}: {name}: Literal[...] = ...")

    @abstractmethod
    def ask(self) -> Row | list[Row]:
        """Compute the answer: a row, or several."""

    @property
    def content(self) -> dict[str, Any]:
        """Return the kind, the revision and every field as JSON values."""
        return self.model_dump(mode="json")

    @property
    def key(self) -> str:
        """Return the hash of the content, the same in every process and on every machine."""
        return content_key(self.content)

    @property
    def label(self) -> str:
        """Return the kind and the fields that differ from their defaults, for display."""
        shown = self.model_dump(mode="json", exclude_defaults=True)
        return " ".join([self.kind, *(f"{name}={value}" for name, value in shown.items())])


def content_key(content: Mapping[str, Any]) -> str:
    """Return the key of a spec's content: 40 hexadecimal digits.

    Floats enter as the shortest decimal that reads back to the same bits. 0.0 and -0.0 give the
    same key.

    Example:
        >>> content_key({"kind": "square", "revision": 1, "number": 3.0})
        '671254062346fea1ac0ed4bcc78dc21138a7ec37'
        >>> content_key({"number": -0.0, "seed": 7}) == content_key({"seed": 7, "number": 0.0})
        True
    """
    text = _canonical(content)
    if "-0.0" in text:  # rare, and looking at every value is slow
        text = _canonical(_unsigned_zeros(content))
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _unsigned_zeros(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0  # -0.0 + 0.0 is 0.0; every other number is unchanged
    if isinstance(value, Mapping):
        return {name: _unsigned_zeros(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_unsigned_zeros(part) for part in value]
    return value


def parsed_spec(kinds: Any, content: Any) -> Spec:
    """Make the spec with this content.

    Args:
        kinds: A Spec class or a union of them.
        content: The fields.

    Returns:
        An instance of the ``Spec`` class that the content names.

    Raises:
        BadInputError: If a field is unknown, missing or out of range.

    Example:
        >>> from headwise.runs.examples import Square
        >>> parsed_spec(Square, {"number": 2}).key == Square(number=2).key
        True
        >>> parsed_spec(Square, {"nubmer": 2})
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: 'nubmer' is no field of square; did you mean 'number'?
    """  # noqa: DOC501
    try:
        return _adapter(kinds).validate_python(content)
    except ValidationError as error:
        raise _in_one_line(error, _classes(kinds), content) from None


@cache
def _adapter(kinds: Any) -> Any:
    return TypeAdapter(kinds)


def _in_one_line(error: ValidationError, classes: list[type[Spec]], content: Any) -> BadInputError:
    """Return the first error; a misspelt name comes before the field it leaves missing."""
    if not isinstance(content, Mapping):
        return BadInputError(
            f"a spec is an object of names and values, not {content!r:.60}",
            hint='write it as {"kind": ..., ...}',
        )
    problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    kind, first = content.get("kind"), problems[0]
    known = [cls for cls in classes if cls.model_fields["kind"].default == kind] or classes
    if first["type"].startswith("union_tag"):
        kinds = [cls.model_fields["kind"].default for cls in classes]
        return BadInputError(f"{kind!r} is no kind of spec", hint=_nearest(str(kind), kinds))
    name = str(first["loc"][-1] if first["loc"] else "")
    titles = " or ".join(cls.model_fields["kind"].default for cls in known)
    if first["type"] == "extra_forbidden":
        fields = [field for cls in known for field in cls.model_fields]
        return BadInputError(f"{name!r} is no field of {titles}", hint=_nearest(name, fields))
    said = first["msg"][:1].lower() + first["msg"][1:]
    got = "" if first["type"] == "missing" else f", got {first['input']!r:.60}"
    place = ".".join(str(part) for part in first["loc"] if part != kind)
    return BadInputError(f"field {place!r} of {titles}: {said}{got}", hint="mend the spec")


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=3)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"there are {', '.join(sorted(set(known)))}"


def _classes(kinds: Any) -> list[type[Spec]]:
    """Return the Spec classes in a class, a union, or an annotated union."""
    if isinstance(kinds, type) and issubclass(kinds, Spec):
        return [kinds]
    return [cls for part in get_args(kinds) for cls in _classes(part)]
