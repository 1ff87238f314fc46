"""A Hugging Face config.json read as JSON: width, heads, ranks and context, of any family."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.advice.carried import WINDOW, carried_fields, sliding_window
from headwise.advice.sizes import FIELDS, KnownSizes, told_sizes
from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.theory.under_mask import MaskName

WIDTH = ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "hidden_dim", "model_dim")
HEADS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "num_query_heads",
)
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads")
HEAD_DIM = ("head_dim", "d_kv", "attention_head_dim", "kv_channels")

#: Families that carry head_dim in no part of their code, whatever their config says.
IGNORES_HEAD_DIM = frozenset({"bert", "gpt2", "roberta", "distilbert"})

#: Parts of a composed model, in the order they are looked at.
PARTS = ("text_config", "llm_config", "vision_config", "encoder", "decoder")

#: Architectures with a causal mask whose names do not end in ForCausalLM.
CAUSAL = frozenset({"GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel"})

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
    part = next((part for part in _parts(raw) if _first(part, HEADS) is not None), None)
    if part is None:
        raise BadInputError(
            f"{path} describes no attention (none of {', '.join(HEADS[:4])} … is there)",
            hint="pass the config.json of a Transformer",
        )
    family = str(part.get("model_type") or raw.get("model_type") or "unknown")
    geometry, context = _geometry(part, path, family), _context(part, path)
    told = (context or USUAL_CONTEXT, context is not None)
    sizes, mask = told_sizes(part, raw), _mask(part, raw)
    carried = carried_fields(part, raw) | {WINDOW: sliding_window(part, raw)}
    return ModelConfig(geometry, *told, family, sizes, mask, raw, carried)


def _mask(part: dict[str, Any], raw: dict[str, Any]) -> MaskName:
    """Causal where the config says so plainly: a decoder, or an architecture known to be one."""
    if raw.get("is_encoder_decoder") is True:
        return "none"
    named = raw.get("architectures") or part.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    causal = any(name.endswith("ForCausalLM") or name in CAUSAL for name in names)
    return "causal" if causal or part.get("is_decoder") is True else "none"


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


def _parts(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield raw
    yield from (raw[name] for name in PARTS if isinstance(raw.get(name), dict))


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
            hint="pass --width, --length and --heads of the layer in question instead",
        )
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInputError(
            f"{path} says {name} is {value!r}", hint="it must be a whole number above zero"
        )
    return value


def _geometry(part: dict[str, Any], path: Path, family: str) -> HeadGeometry:
    heads, width = _number(part, HEADS, path), _number(part, WIDTH, path)
    if heads is None or width is None:
        raise BadInputError(
            f"{path} tells no width (none of {', '.join(WIDTH[:4])} … is there)",
            hint="pass --width and --length instead",
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
