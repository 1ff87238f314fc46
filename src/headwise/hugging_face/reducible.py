"""Which trained models can be reduced: read from the config, before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError
from headwise.hugging_face.config import read_fields
from headwise.hugging_face.places import find_source

#: Decoders with rotary positions, and the class of each that is cut.
DECODERS = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
}

#: Classes of BERT that are cut with their task heads, and the Auto class that loads each.
ENCODERS = {
    "BertModel": "AutoModel",
    "BertForMaskedLM": "AutoModelForMaskedLM",
    "BertForPreTraining": "AutoModelForPreTraining",
    "BertForSequenceClassification": "AutoModelForSequenceClassification",
    "BertForTokenClassification": "AutoModelForTokenClassification",
    "BertForQuestionAnswering": "AutoModelForQuestionAnswering",
    "BertForMultipleChoice": "AutoModelForMultipleChoice",
    "BertForNextSentencePrediction": "AutoModelForNextSentencePrediction",
}

#: The model types that can be reduced.
FAMILIES = (*DECODERS, "bert")


def refuse_irreducible(model: str | Path) -> None:
    """Refuse a model that ``reduce`` does not take; torch is not imported.

    A model on the hub is not fetched: ``reduce`` refuses it.

    Args:
        model: A path or an id such as "owner/name".

    Raises:
        BadInputError: There is no such model, or it is of another family or class.

    Example:
        >>> refuse_irreducible("owner/name")
    """
    source = find_source(model)
    if source.folder is not None and source.gguf is None:
        class_named(read_fields(source.folder / "config.json"))


def class_named(fields: Mapping[str, Any]) -> str:
    """Return the class of transformers that a config names, or refuse what cannot be cut."""
    refuse_other_family(fields)
    named = next(iter(fields.get("architectures") or ()), None)
    return known_class(fields, (named or classes_of(fields)[0],))


def known_class(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these names that is a class that can be cut, or refuse them."""
    known = classes_of(fields)
    found = next((name for name in names if name in known), None)
    if found is None:
        raise BadInputError(
            f"expected a model of class {', '.join(known)}, got {names[0]}",
            hint="load one of these classes from the checkpoint and save it into another folder",
        )
    return found


def classes_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the classes of a family that can be cut; the first is that without ``architectures``.

    >>> classes_of({"model_type": "llama"})
    ('LlamaForCausalLM',)
    """
    kind = fields["model_type"]
    return tuple(ENCODERS) if kind == "bert" else (DECODERS[kind],)


def refuse_other_family(fields: Mapping[str, Any]) -> None:
    """Refuse a model type that cannot be cut, and name those that can."""
    kind = fields.get("model_type")
    if kind not in FAMILIES:
        raise BadInputError(
            f"expected a model of type {', '.join(FAMILIES)}, got {kind}",
            hint="choose a model of these types",
        )
    if fields.get("headwise"):
        raise BadInputError(
            "expected a model that was not cut before, got one that headwise wrote",
            hint="cut the original to the smaller size",
        )
    rotary = (fields.get("rope_parameters") or {}).get("rope_type", "default")
    if kind in DECODERS and rotary != "default":
        raise BadInputError(
            f"expected rotary positions of type default, got {rotary}",
            hint="choose a model without scaled rotary positions",
        )
