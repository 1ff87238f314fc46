"""What a family's attention layer has besides its heads, and the length that it takes by default.

``family_layers.json`` holds the defaults of ``transformers``: ``context`` in tokens, or
``image_size`` and ``patch_size``; ``biases`` by default and where a field asks for them
(``biased``); the ``rotary`` base, the share of the rank that turns, and whether queries and keys
are ``normed``. Families with attention of another form, such as sinks or linear biases, have no
``biases`` there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FAMILY_LAYERS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)

#: Fields with which configs switch biases on or off.
BIAS_FIELDS = ("attention_bias", "qkv_bias", "use_qkv_bias", "use_bias", "enable_bias", "bias")

#: Fields with the share of a head's dimensions that turn with the position.
TURNED_FIELDS = ("partial_rotary_factor", "rotary_pct")

Biases = Literal["none", "qkv", "all"]


@dataclass(frozen=True)
class FamilyLayer:
    """An attention layer of a family, besides its geometry.

    Attributes:
        biases: Where it has biases; None if that is not known.
        rotary: The base of its rotary positions; None without them.
        turned: The share of the head dimension that turns.
        scaled: Whether the config scales the rotary positions.
        normed: Whether queries and keys are normalised.
    """

    biases: Biases | None = None
    rotary: float | None = None
    turned: float = 1.0
    scaled: bool = False
    normed: bool = False


def family_layer(family: str, part: Mapping[str, Any], carried: Mapping[str, Any]) -> FamilyLayer:
    """Return what the config says of its layer, else the default of its family.

    >>> family_layer("llama", {}, {"rope_theta": 5e5})
    FamilyLayer(biases='none', rotary=500000.0, turned=1.0, scaled=False, normed=False)
    """
    known = FAMILY_LAYERS.get(family, {})
    rotary = carried.get("rope_theta", known.get("rotary"))
    return FamilyLayer(
        biases=_biases(known, part),
        rotary=None if rotary is None else float(rotary),
        turned=_turned(part, known.get("turned", 1.0)),
        scaled="rope_scaling" in carried,
        normed=known.get("normed", False),
    )


def family_context(family: str, part: Mapping[str, Any]) -> int | None:
    """Return the tokens that models of the family take by default; None if that is not known.

    >>> family_context("bert", {}), family_context("vit", {"patch_size": 32})
    (512, 50)
    """
    known = FAMILY_LAYERS.get(family, {})
    if "image_size" not in known:
        return known.get("context")
    sizes = {name: known[name] for name in ("image_size", "patch_size")}
    return patches(sizes | {name: part[name] for name in sizes if part.get(name) is not None})


def patches(sizes: Mapping[str, Any]) -> int | None:
    """Return the patches of an image and one class token; None without usable sizes."""
    image, patch = sizes.get("image_size"), sizes.get("patch_size")
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in (image, patch))
    if not whole or not 0 < patch <= image <= LARGEST_IMAGE:  # type: ignore[operator]
        return None
    return (image // patch) ** 2 + 1  # type: ignore[operator]


#: No image has a longer side.
LARGEST_IMAGE = 10**12


def _biases(known: Mapping[str, Any], part: Mapping[str, Any]) -> Biases | None:
    told = next((part[name] for name in BIAS_FIELDS if isinstance(part.get(name), bool)), None)
    if told is None:
        return known.get("biases")
    return known.get("biased", "all") if told else "none"


def _turned(part: Mapping[str, Any], default: float) -> float:
    rotary = part.get("rope_parameters")
    parts = (part, rotary) if isinstance(rotary, Mapping) else (part,)
    found = (one.get(name) for one in parts for name in TURNED_FIELDS)
    return next((float(s) for s in found if isinstance(s, int | float) and 0 < s <= 1), default)
