"""The advised geometry as something to run: a Hugging Face config, or the layer call."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from headwise.advice.carried import WINDOW
from headwise.advice.result import Advice
from headwise.config_fields import config_fields, one_even_rank
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry

Form = Literal["qwen3", "mistral", "deepseek_v3", "torch"]

ARCHITECTURES = {
    "qwen3": "Qwen3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}


def exported(advice: Advice, form: str) -> str:
    """The first choice in this form, with what a config told, or the sizes that the data did.

    >>> from headwise.advice.advisor import advise_numbers
    >>> json.loads(exported(advise_numbers(512, 768), "qwen3"))["head_dim"]
    96
    """
    geometry = advice.best.geometry
    if form not in get_args(Form):
        raise BadInputError(
            f"there is no form {form!r}", hint=f"choose from {', '.join(get_args(Form))}"
        )
    if form == "torch":
        return _layer_call(geometry)
    _refuse_unless_expressible(geometry, form)
    sizes = advice.sizes.completed(geometry.width, advice.evidence.context)
    family = {"architectures": [ARCHITECTURES[form]], "model_type": form}
    own = config_fields(geometry, sizes) | _carried(advice, form)
    return json.dumps(family | own, indent=2)


def assumed_sizes(advice: Advice, form: str) -> str:
    """The sizes in that form which nobody told, in words; empty if there are none.

    >>> from headwise.advice.advisor import advise_numbers
    >>> assumed_sizes(advise_numbers(512, 768), "qwen3")
    'num_hidden_layers 12, intermediate_size 3072, vocab_size 32000'
    """
    if form == "torch":
        return ""
    return advice.sizes.assumed(advice.evidence.width, advice.evidence.context)


def unasked_mask(advice: Advice, form: str) -> str:
    """Said where a causal language model is written of what was judged without its mask; or empty.

    >>> from headwise.advice.advisor import advise_numbers
    >>> unasked_mask(advise_numbers(512, 768), "qwen3")
    'Qwen3ForCausalLM has a causal mask, and this was judged without one'
    """
    if form == "torch" or advice.evidence.mask == "causal":
        return ""
    return f"{ARCHITECTURES[form]} has a causal mask, and this was judged without one"


def _carried(advice: Advice, form: str) -> dict[str, Any]:
    """What the model's own config told; Mistral would have a window unless it is said that not."""
    told = {name: value for name, value in advice.carried.items() if name != WINDOW}
    return told | {WINDOW: advice.carried.get(WINDOW)} if form == "mistral" else told


def _refuse_unless_expressible(geometry: HeadGeometry, form: str) -> None:
    """What the family cannot express, with the option that would help."""
    latent = isinstance(geometry, LatentGeometry)
    if form == "deepseek_v3" and not latent:
        raise BadInputError(
            "deepseek_v3 has latent attention, and the first choice has not",
            hint="ask for the kind mla",
        )
    if form != "deepseek_v3" and latent:
        raise BadInputError(
            f"{form} has no latent attention", hint="export deepseek_v3, or ask for another kind"
        )
    if not latent and not one_even_rank(geometry):
        raise BadInputError(
            f"{form} takes one even head dimension for queries, keys and values, and the first "
            f"choice has {geometry.qk_rank} and {geometry.v_rank}",
            hint="ask for ranks in multiples of 2, or export torch",
        )


def _layer_call(geometry: HeadGeometry) -> str:
    kind = type(geometry).__name__
    return (
        f"from headwise.attention import {kind}, fitting\n\n"
        f"geometry = {geometry}\n"
        'layer = fitting(geometry, biases="all")'
    )
