"""What an exported config takes over from the model's own, beside its sizes and its heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Fields that every exported family has, with what their values are.
FIELDS: dict[str, tuple[type, ...]] = {
    "rope_theta": (int, float),
    "rope_scaling": (dict,),
    "rms_norm_eps": (int, float),
    "hidden_act": (str,),
    "tie_word_embeddings": (bool,),
    "initializer_range": (int, float),
    "attention_dropout": (int, float),
    "bos_token_id": (int,),
    "eos_token_id": (int, list),
    "pad_token_id": (int,),
}

#: The field of a sliding window, which of the exported families Mistral alone reads by itself.
WINDOW = "sliding_window"


def carried_fields(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a config tells, each from the first of its parts that does.

    >>> carried_fields({"rope_theta": 5e5, "hidden_size": 64}, {"tie_word_embeddings": True})
    {'rope_theta': 500000.0, 'tie_word_embeddings': True}
    """
    told = [_with_rotary_base(part) for part in parts]
    found: dict[str, Any] = {}
    for name, kinds in FIELDS.items():
        values = (part[name] for part in told if _is_one(part.get(name), kinds))
        value = next(values, None)
        if value is not None:
            found[name] = value
    return found


def sliding_window(*parts: Mapping[str, Any]) -> int | None:
    """How many tokens back a token looks, where a config limits that.

    >>> sliding_window({"sliding_window": 4096}), sliding_window({"sliding_window": None})
    (4096, None)
    >>> sliding_window({"sliding_window": 4096, "use_sliding_window": False})
    """
    used = (part.get(WINDOW) for part in parts if part.get("use_sliding_window") is not False)
    return next((value for value in used if _is_one(value, (int,))), None)


def _is_one(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether it is of such a kind; a truth is no number."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _with_rotary_base(part: Mapping[str, Any]) -> dict[str, Any]:
    """Newer configs keep the rotary base and its scaling in one field; older ones in two.

    Written as two, both read it.
    """
    rotary = part.get("rope_parameters")
    if not isinstance(rotary, Mapping):
        return dict(part)
    unfolded = {"rope_theta": rotary.get("rope_theta")}
    if rotary.get("rope_type", "default") != "default":
        unfolded["rope_scaling"] = {k: v for k, v in rotary.items() if k != "rope_theta"}
    return {**part, **unfolded}
