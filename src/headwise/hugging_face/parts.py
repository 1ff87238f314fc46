"""Which part of a config holds the attention heads, and what its names say about the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.mask_names import MaskName

HEADS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "num_query_heads",
)

#: Sub-configs of composed models, in the order they are searched.
PARTS = ("text_config", "llm_config", "vision_config", "encoder", "decoder")

#: Sub-configs that hold a language model.
LANGUAGE = frozenset({"text_config", "llm_config"})

#: Sub-configs in which every token attends to every other.
BIDIRECTIONAL = frozenset({"vision_config", "encoder"})

#: Families whose "heads" belong to a recurrence, and fields that name its state.
RECURRENT = frozenset({"mamba2", "xlstm", "gla", "retnet", "rwkv5", "rwkv6", "rwkv7"})
STATE = ("state_size", "ssm_state_size", "d_state", "ssm_cfg")

#: Fields that only models with an encoder and a decoder have.
BOTH_STACKS = ("encoder_layers", "encoder_attention_heads", "num_decoder_layers")

#: Architectures with a causal mask whose names do not end in ForCausalLM.
CAUSAL = frozenset({"GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel"})

#: Families of decoders and encoders: their masks are known even without ``architectures``,
#: which ``save_pretrained`` of a bare config leaves out.
FAMILIES: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("families.json").read_text(encoding="utf-8")
)

#: Endings of architecture names, and the task that a model with such a head trains on.
TASK_OF: dict[str, str] = {
    "ForCausalLM": "next-token",
    "LMHeadModel": "next-token",
    "ForConditionalGeneration": "next-token",
    "ForMaskedLM": "masked-token",
    "ForPreTraining": "masked-token",
    "ForMaskedImageModeling": "masked-token",
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "classify",
    "ForImageClassification": "classify",
    "ForAudioClassification": "classify",
}

MaskFrom = Literal["config", "family", "unknown"]


@dataclass(frozen=True)
class JudgedPart:
    """The part of a config that is judged.

    ``name`` is empty where the whole config is; ``others`` are sub-configs that are not judged.
    """

    name: str
    fields: dict[str, Any]
    others: tuple[str, ...]


def judged_part(raw: dict[str, Any]) -> JudgedPart | None:
    """Return the first part of a config that names attention heads; None if none does."""
    parts = dict(_parts(raw))
    name = next((name for name, part in parts.items() if heads_field(part)), None)
    if name is None:
        return None
    return JudgedPart(name, parts[name], tuple(other for other in parts if other not in ("", name)))


def heads_field(part: Mapping[str, Any]) -> str | None:
    """Return the field with the number of attention heads; heads of a recurrence do not count.

    Hybrids of attention and a recurrence name their attention heads ``num_attention_heads``.

    Returns:
        The name of the field, or None.
    """
    names = ("num_attention_heads",) if _is_recurrent(part) else HEADS
    return next((name for name in names if part.get(name) is not None), None)


def family_of(part: Mapping[str, Any], raw: Mapping[str, Any]) -> str | None:
    """The family (``model_type``) of a part or of the whole config; None if neither names one."""
    named = (part.get("model_type"), raw.get("model_type"))
    return next((name for name in named if isinstance(name, str) and name), None)


def mask_of(judged: JudgedPart, raw: dict[str, Any]) -> tuple[MaskName, MaskFrom]:
    """The mask of the judged part, and how it is known: from the config, its family, or not."""
    part = judged.fields
    if has_both_stacks(raw) or has_both_stacks(part):
        return "none", "config"
    if part.get("is_decoder") is True:
        return "causal", "config"
    own = part if judged.name in BIDIRECTIONAL else raw
    names = _architectures(own) or _architectures(part)
    causal = any(name.endswith("ForCausalLM") or name in CAUSAL for name in names)
    if causal or _generates(names, judged, raw):
        return "causal", "config"
    family = family_of(part, raw)
    if judged.name in BIDIRECTIONAL or names:
        return "none", "config"
    if family in FAMILIES["decoder"]:
        return "causal", "family"
    return "none", "family" if family in FAMILIES["encoder"] else "unknown"


def task_of(judged: JudgedPart, raw: dict[str, Any], mask: MaskName) -> str | None:
    """The task that the architecture trains on; None where the config does not say."""
    if judged.name in BIDIRECTIONAL:
        return None
    names = _architectures(raw) or _architectures(judged.fields)
    for name in names:
        for ending, task in TASK_OF.items():
            if name.endswith(ending):
                return task
    return "next-token" if mask == "causal" else None


def has_both_stacks(part: Mapping[str, Any]) -> bool:
    """Whether the config describes an encoder with a decoder."""
    stated = part.get("is_encoder_decoder")
    if isinstance(stated, bool):
        return stated
    return any(part.get(name) is not None for name in BOTH_STACKS)


def _parts(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "", raw
    yield from ((name, raw[name]) for name in PARTS if isinstance(raw.get(name), dict))


def _is_recurrent(part: Mapping[str, Any]) -> bool:
    named = any(part.get(name) is not None for name in STATE)
    return named or family_of(part, {}) in RECURRENT


def _architectures(part: Mapping[str, Any]) -> list[str]:
    named = part.get("architectures")
    return [str(name) for name in named] if isinstance(named, list) else []


def _generates(names: list[str], judged: JudgedPart, raw: dict[str, Any]) -> bool:
    """Whether a multimodal model generates text with the judged part."""
    writes = judged.name in LANGUAGE or (not judged.name and "vision_config" in raw)
    return writes and any(name.endswith("ForConditionalGeneration") for name in names)
