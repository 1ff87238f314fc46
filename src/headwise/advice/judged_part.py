"""Which part of a config is judged: where its heads stand, its mask, and what is said of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwise.masks import MaskName

HEADS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "num_query_heads",
)

#: Parts of a composed model, in the order they are looked at.
PARTS = ("text_config", "llm_config", "vision_config", "encoder", "decoder")

#: Parts that hold a language model.
LANGUAGE = frozenset({"text_config", "llm_config"})

#: Parts in which every token sees every other.
SEES_ALL = frozenset({"vision_config", "encoder"})

#: Families whose plain heads are those of a recurrence, and fields that name its state.
RECURRENT = frozenset({"mamba2", "xlstm", "gla", "retnet", "rwkv5", "rwkv6", "rwkv7"})
STATE = ("state_size", "ssm_state_size", "d_state", "ssm_cfg")

#: Fields of a model with an encoder and a decoder, where it is not said outright.
BOTH_STACKS = ("encoder_layers", "encoder_attention_heads", "num_decoder_layers")

#: Architectures with a causal mask whose names do not end in ForCausalLM.
CAUSAL = frozenset({"GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel"})


@dataclass(frozen=True)
class JudgedPart:
    """The fields whose heads are judged, under which name they stand, and what was not judged.

    ``name`` is empty where the whole config is judged.
    """

    name: str
    fields: dict[str, Any]
    others: tuple[str, ...]


def judged_part(raw: dict[str, Any]) -> JudgedPart | None:
    """The first part of a config that names heads of attention; None if none does.

    >>> towers = {"text_config": {"n_head": 8}, "vision_config": {"n_head": 12}}
    >>> judged_part(towers).name, judged_part(towers).others
    ('text_config', ('vision_config',))
    >>> judged_part({"model_type": "mamba2", "num_heads": 128, "state_size": 128})
    """
    parts = dict(_parts(raw))
    name = next((name for name, part in parts.items() if heads_field(part)), None)
    if name is None:
        return None
    return JudgedPart(name, parts[name], tuple(other for other in parts if other not in ("", name)))


def heads_field(part: dict[str, Any]) -> str | None:
    """The field that tells the heads of attention; those of a recurrence are none.

    A hybrid of both names its heads of attention so that no other could be meant.

    >>> heads_field({"model_type": "jamba", "num_attention_heads": 32, "mamba_d_state": 16})
    'num_attention_heads'
    """
    names = ("num_attention_heads",) if _is_recurrent(part) else HEADS
    return next((name for name in names if part.get(name) is not None), None)


def mask_of(judged: JudgedPart, raw: dict[str, Any]) -> MaskName:
    """Causal where the config says so plainly: a decoder, or an architecture known to be one."""
    part = judged.fields
    if _has_both_stacks(raw) or _has_both_stacks(part):
        return "none"
    if part.get("is_decoder") is True:
        return "causal"
    names = _architectures(part if judged.name in SEES_ALL else raw) or _architectures(part)
    causal = any(name.endswith("ForCausalLM") or name in CAUSAL for name in names)
    return "causal" if causal or _generates(names, judged, raw) else "none"


def part_finding(judged: JudgedPart, mask: MaskName) -> list[str]:
    """Said where a config describes more than what was judged.

    >>> part_finding(JudgedPart("text_config", {}, ("vision_config",)), "none")
    ['Judged: text_config, and not vision_config.']
    """
    if judged.name or judged.others:
        others = f", and not {' or '.join(judged.others)}" if judged.others else ""
        return [f"Judged: {judged.name or 'the model around its parts'}{others}."]
    # Under a causal mask it is the decoder that was asked about.
    if mask == "causal" or not _has_both_stacks(judged.fields):
        return []
    return [f"Judged: the encoder. {_about_decoder(judged.fields)}"]


def _about_decoder(part: dict[str, Any]) -> str:
    """How to ask about the decoder, or, where its heads are others, how many they are."""
    own, length = part.get("decoder_attention_heads"), part.get("max_target_positions")
    if own not in (None, part.get("encoder_attention_heads")):
        return f"The decoder has {own} heads, which were not judged."
    at_length = f" and a length of {length}" if length is not None else ""
    return f"For the decoder ask again with a causal mask{at_length}."


def _parts(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", raw
    yield from ((name, raw[name]) for name in PARTS if isinstance(raw.get(name), dict))


def _is_recurrent(part: dict[str, Any]) -> bool:
    named = any(part.get(name) is not None for name in STATE)
    return named or part.get("model_type") in RECURRENT


def _has_both_stacks(part: dict[str, Any]) -> bool:
    told = part.get("is_encoder_decoder")
    if isinstance(told, bool):
        return told
    return any(part.get(name) is not None for name in BOTH_STACKS)


def _architectures(part: dict[str, Any]) -> list[str]:
    named = part.get("architectures")
    return [str(name) for name in named] if isinstance(named, list) else []


def _generates(names: list[str], judged: JudgedPart, raw: dict[str, Any]) -> bool:
    """Whether a model of text and more writes with the part that is judged.

    Without a part of its own for text, beside pictures, the whole config is that part.
    """
    writes = judged.name in LANGUAGE or (not judged.name and "vision_config" in raw)
    return writes and any(name.endswith("ForConditionalGeneration") for name in names)
