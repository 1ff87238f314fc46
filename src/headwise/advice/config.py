"""A Hugging Face config.json read as JSON: width, heads, ranks and context, of any family."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.advice.carried import WINDOW, carried_fields, sliding_window
from headwise.advice.judged_part import HEADS, JudgedPart, heads_field, judged_part, mask_of
from headwise.advice.sizes import FIELDS, KnownSizes, told_sizes
from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.masks import MaskName

WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "hidden_dim", "model_dim")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads")
HEAD_DIM = ("head_dim", "d_kv", "attention_head_dim", "kv_channels")

#: Families that carry head_dim in no part of their code, whatever their config says.
IGNORES_HEAD_DIM = frozenset({"bert", "gpt2", "roberta", "distilbert"})

#: Tokens when the config tells none.
USUAL_CONTEXT = 2048


@dataclass(frozen=True)
class ModelConfig:
    """The attention geometry of a model, its context, family and sizes, and its JSON.

    ``context_told`` says whether the context is the config's own; ``carried`` are the fields that
    an export takes over.
    """

    geometry: HeadGeometry
    context: int
    context_told: bool
    family: str
    sizes: KnownSizes
    mask: MaskName
    raw: dict[str, Any]
    carried: dict[str, Any]
    judged: JudgedPart


def read_config(path: Path | str) -> ModelConfig:
    """The attention geometry that a config.json describes.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "config.json"
    >>> _ = place.write_text('{"model_type": "gpt2", "n_embd": 768, "n_head": 12}')
    >>> read_config(place).geometry.qk_rank
    64
    """
    path = Path(path)
    if path.is_dir():
        path = path / "config.json"
    raw = _loaded(path)
    judged = judged_part(raw)
    if judged is None:
        raise BadInputError(
            f"{path} describes no attention ({_why_none(raw)})",
            hint="pass the config.json of a Transformer",
        )
    part = judged.fields
    family = str(part.get("model_type") or raw.get("model_type") or "unknown")
    geometry, context = _geometry(part, path, family), _context(part, path)
    told = (context or USUAL_CONTEXT, context is not None)
    sizes, mask = told_sizes(part, raw), mask_of(judged, raw)
    carried = carried_fields(part, raw) | {WINDOW: sliding_window(part, raw)}
    return ModelConfig(geometry, *told, family, sizes, mask, raw, carried, judged)


def _why_none(raw: dict[str, Any]) -> str:
    """What is missing; heads that are there and not taken are those of a recurrence."""
    if any(raw.get(name) is not None for name in HEADS):
        family = raw.get("model_type", "this model")
        return f"the heads of {family} are those of a recurrence"
    return f"none of {', '.join(HEADS[:4])} … is there"


def _loaded(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be opened ({error.strerror})", hint="check the path and its permissions"
        ) from None
    except ValueError:
        raise UnreadableFileError(f"{path} is not JSON", hint="pass a config.json") from None
    if not isinstance(raw, dict):
        raise UnreadableFileError(
            f"{path} holds a {type(raw).__name__}, not an object", hint="pass a config.json"
        )
    return raw


def _first(part: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((part[name] for name in names if part.get(name) is not None), None)


def _number(part: dict[str, Any], names: tuple[str, ...], path: Path) -> int | None:
    """The first of these that is given, as a whole number of at least 1."""
    value = _first(part, names)
    if value is None:
        return None
    name = next(name for name in names if part.get(name) is not None)
    if isinstance(value, list):
        raise BadInputError(
            f"{path} gives {name} per layer ({len(value)} numbers)",
            hint="ask with the width, length and heads of the layer in question instead",
        )
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInputError(
            f"{path} says {name} is {value!r}", hint="it must be a whole number above zero"
        )
    return value


def _geometry(part: dict[str, Any], path: Path, family: str) -> HeadGeometry:
    field = heads_field(part)
    heads = _number(part, (field,), path) if field else None
    width = _number(part, WIDTH, path)
    if heads is None or width is None:
        raise BadInputError(
            f"{path} tells no width (none of {', '.join(WIDTH[:4])} … is there)",
            hint="ask with a width and a length instead",
        )
    if part.get("kv_lora_rank") is not None:
        return _latent(part, path, width, heads)
    given = None if family in IGNORES_HEAD_DIM else _number(part, HEAD_DIM, path)
    rank = given or width // heads
    if given is None and width % heads:
        raise BadInputError(
            f"{path} has {heads} heads in width {width} and no head_dim",
            hint="the width must be a multiple of the heads",
        )
    grouped = _number(part, KV_HEADS, path)
    kv_heads = grouped or (1 if part.get("multi_query") is True else heads)
    return HeadGeometry(width, heads, kv_heads, rank, rank)


def _latent(part: dict[str, Any], path: Path, width: int, heads: int) -> LatentGeometry:
    rope = _number(part, ("qk_rope_head_dim",), path) or 0
    content = _number(part, ("qk_nope_head_dim",), path)
    values = _number(part, ("v_head_dim",), path)
    latent = _number(part, ("kv_lora_rank",), path)
    if content is None or values is None or latent is None:
        raise BadInputError(
            f"{path} has kv_lora_rank but not qk_nope_head_dim and v_head_dim",
            hint="pass the config.json of a model with latent attention, whole",
        )
    queries = _number(part, ("q_lora_rank",), path)
    return LatentGeometry(width, heads, heads, content + rope, values, latent, queries, rope)


def _context(part: dict[str, Any], path: Path) -> int | None:
    found = _number(part, FIELDS["context"], path)
    if found is not None:
        return max(2, found)
    image, patch = (part.get(name) for name in ("image_size", "patch_size"))
    if isinstance(image, int) and isinstance(patch, int) and patch:
        return (image // patch) ** 2 + 1
    return None
