"""Read the attention geometry, context and sizes of any model from its config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face.family_layers import (
    FamilyLayer,
    family_context,
    family_layer,
    patches,
)
from headwise.hugging_face.parts import (
    HEADS,
    JudgedPart,
    MaskFrom,
    family_of,
    heads_field,
    judged_part,
    mask_of,
    task_of,
)
from headwise.hugging_face.plausible import refuse_implausible
from headwise.hugging_face.sizes import (
    FIELDS,
    WINDOW,
    KnownSizes,
    carried_fields,
    sliding_window,
    told_sizes,
)
from headwise.mask_names import MaskName
from headwise.report.results import short_repr

WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "hidden_dim", "model_dim")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads")
HEAD_DIM = ("head_dim", "d_kv", "attention_head_dim", "kv_channels")

#: Families whose code ignores ``head_dim``.
IGNORES_HEAD_DIM = frozenset({"bert", "gpt2", "roberta", "distilbert"})

#: How the context is known: from the config, as the family's default, or not at all.
ContextFrom = Literal["config", "family", "assumed"]

#: The context assumed where a config gives none and its family is not known.
USUAL_CONTEXT = 2048

#: No field of a real config is larger; beyond this, costs are no longer numbers one can use.
LARGEST = 10**12

#: No config has more bytes; a file such as /dev/zero has no end.
LONGEST = 2**26


@dataclass(frozen=True)
class ModelConfig:
    """What a config says about a model's attention.

    Attributes:
        geometry: Width, heads and ranks of one attention layer.
        context: Tokens that the model takes; that of the family, or ``USUAL_CONTEXT``, where the
            config gives none.
        context_from: Where ``context`` comes from.
        family: The ``model_type``, or "unknown".
        sizes: Depth, MLP width, vocabulary and context, as far as they are given.
        mask: "causal" for a decoder, else "none".
        mask_from: Whether the mask is known from the config, from its family, or not at all.
        task: The task that the architecture trains on, where its name says so.
        carried: Fields that an exported config keeps.
        judged: Which part of the config this describes.
        layer: Biases and positions of the layer.
    """

    geometry: HeadGeometry
    context: int
    context_from: ContextFrom
    family: str
    sizes: KnownSizes
    mask: MaskName
    mask_from: MaskFrom
    task: str | None
    carried: dict[str, Any]
    judged: JudgedPart
    layer: FamilyLayer

    __repr__ = short_repr

    @property
    def context_told(self) -> bool:
        """Whether the config itself gives the context."""
        return self.context_from == "config"


def read_config(source: Path | str | Mapping[str, Any] | Any) -> ModelConfig:
    """Read the attention geometry that a config describes.

    Args:
        source: A config.json, the folder that holds one, its fields as a mapping, or a
            ``transformers`` config.

    Returns:
        The geometry, context, mask and sizes of the model.

    Raises:
        BadInputError: The config describes no attention, or a field has no usable value.
        UnreadableFileError: The file is missing or not a JSON object.

    >>> read_config({"model_type": "gpt2", "n_embd": 768, "n_head": 12}).geometry.qk_rank
    64
    """
    raw, name = _fields(source)
    refuse_implausible(raw, name)
    judged = judged_part(raw)
    if judged is None:
        judged = judged_part(raw := _with_defaults(raw))
    if judged is None:
        raise BadInputError(
            f"{name} describes no attention ({_why_none(raw)})",
            hint="pass the config.json of a Transformer",
        )
    part = judged.fields
    family = family_of(part, raw) or "unknown"
    context, context_from = _context(part, name, family)
    carried = carried_fields(part, raw)
    mask, mask_from = mask_of(judged, raw)
    return ModelConfig(
        geometry=_geometry(part, name, family),
        context=context,
        context_from=context_from,
        family=family,
        sizes=told_sizes(part, raw),
        mask=mask,
        mask_from=mask_from,
        task=task_of(judged, raw, mask),
        carried=carried | {WINDOW: sliding_window(part, raw)},
        judged=judged,
        layer=family_layer(family, part, carried),
    )


def _fields(source: Any) -> tuple[dict[str, Any], str]:
    """The fields of a config, and a name for error messages."""
    if isinstance(source, Mapping):
        return dict(source), "config"
    if hasattr(source, "to_dict"):
        return source.to_dict(), type(source).__name__
    if not isinstance(source, str | Path):
        raise BadInputError(
            f"config: expected a path, a mapping or a transformers config, got {source!r}",
            hint="pass the path of a config.json",
        )
    path = Path(source)
    path = path / "config.json" if path.is_dir() else path
    return read_fields(path), str(path)


def read_fields(path: Path) -> dict[str, Any]:
    """Read the fields of a config.json."""
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
        if len(content) > LONGEST:
            raise UnreadableFileError(
                f"{path}: expected a config of at most {LONGEST:,} bytes, got more",
                hint="pass a config.json",
            )
        raw = json.loads(content.decode("utf-8"))
    except UnreadableFileError:
        raise
    except FileNotFoundError:
        raise UnreadableFileError(f"there is no file {path}", hint="pass a config.json") from None
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be opened ({error.strerror})", hint="check the path and its permissions"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(
            f"{path} is not JSON{where_not_json(error)}", hint="pass a config.json"
        ) from None
    if not isinstance(raw, dict):
        raise UnreadableFileError(
            f"{path}: expected a JSON object, got a {type(raw).__name__}",
            hint="pass a config.json",
        )
    return raw


def where_not_json(error: Exception) -> str:
    """Return where a text stops being JSON, if the error says so.

    >>> where_not_json(json.JSONDecodeError("Expecting value", "{", 1))
    ': Expecting value at line 1, column 2'
    """
    if not isinstance(error, json.JSONDecodeError):
        return ""
    return f": {error.msg} at line {error.lineno}, column {error.colno}"


def _with_defaults(raw: dict[str, Any]) -> dict[str, Any]:
    """The config with its family's default sizes, where transformers is installed and knows it."""
    try:
        from transformers import CONFIG_MAPPING, AutoConfig

        if raw.get("model_type") not in CONFIG_MAPPING:
            return raw
        return AutoConfig.for_model(**raw).to_dict()
    except Exception:  # whatever transformers refuses, the fields as written still stand
        return raw


def _why_none(raw: dict[str, Any]) -> str:
    if any(raw.get(name) is not None for name in HEADS):
        family = raw.get("model_type", "this model")
        return f"the heads of {family} belong to a recurrence"
    return f"it has none of {', '.join(HEADS[:4])} …"


def _number(part: dict[str, Any], names: tuple[str, ...], where: str) -> int | None:
    """The first of these fields that is given, as a whole number of at least 1."""
    name = next((name for name in names if part.get(name) is not None), None)
    if name is None:
        return None
    value = part[name]
    if isinstance(value, list):
        raise BadInputError(
            f"{where} gives {name} per layer ({len(value)} numbers)",
            hint="ask with the width, length and heads of one layer instead",
        )
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise BadInputError(
            f"{where}: expected a whole number above zero for {name}, got {value!r}",
            hint="correct the config",
        )
    return value


def _geometry(part: dict[str, Any], where: str, family: str) -> HeadGeometry:
    field = heads_field(part)
    heads = _number(part, (field,), where) if field else None
    width = _number(part, WIDTH, where)
    if heads is None or width is None:
        raise BadInputError(
            f"{where} gives no width (none of {', '.join(WIDTH[:4])} …)",
            hint="ask with a width and a length instead",
        )
    if part.get("kv_lora_rank") is not None:
        return _latent(part, where, width, heads)
    given = None if family in IGNORES_HEAD_DIM else _number(part, HEAD_DIM, where)
    if given is None and width % heads:
        raise BadInputError(
            f"{where} has {heads} heads in width {width} and no head_dim",
            hint="the width must be a multiple of the heads",
        )
    rank = given or width // heads
    kv_heads = _number(part, KV_HEADS, where) or (1 if part.get("multi_query") is True else heads)
    return HeadGeometry(width=width, heads=heads, kv_heads=kv_heads, qk_rank=rank, v_rank=rank)


def _latent(part: dict[str, Any], where: str, width: int, heads: int) -> LatentGeometry:
    rope = _number(part, ("qk_rope_head_dim",), where) or 0
    content = _number(part, ("qk_nope_head_dim",), where)
    values = _number(part, ("v_head_dim",), where)
    latent = _number(part, ("kv_lora_rank",), where)
    if content is None or values is None or latent is None:
        raise BadInputError(
            f"{where} has kv_lora_rank but not qk_nope_head_dim and v_head_dim",
            hint="pass the complete config.json of a model with latent attention",
        )
    return LatentGeometry(
        width=width,
        heads=heads,
        kv_heads=heads,
        qk_rank=content + rope,
        v_rank=values,
        kv_latent=latent,
        q_latent=_number(part, ("q_lora_rank",), where),
        rope_rank=rope,
    )


def _context(part: dict[str, Any], where: str, family: str) -> tuple[int, ContextFrom]:
    """The context in tokens; of an image model, its patches and one class token."""
    found = _number(part, FIELDS["context"], where) or patches(part)
    if found is not None:
        return max(2, found), "config"
    found = family_context(family, part)
    return (USUAL_CONTEXT, "assumed") if found is None else (found, "family")
