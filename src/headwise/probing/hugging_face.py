"""Hugging Face models read like layers of our own: queries, keys, mask, temperature.

Their layers ask one registry, ``transformers.AttentionInterface``, for the function that attends.
While a block runs, the registry hands that function out with a reader in front. Neither the
function nor the config is exchanged: masks are made and outputs computed as without the block.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.capture import Receiver
from headwise.attention.mask_arguments import as_mask
from headwise.attention.masks import EVERYTHING, Additive, Causal, Grid, Mask
from headwise.attention.scores import default_temperature
from headwise.attention.view import AttentionView
from headwise.errors import BadInputError

Attend = Callable[..., Any]

#: Implementations whose masks say all: those of the others stay within their kernels.
READABLE = (None, "eager", "sdpa")


def hugging_face_models(model: nn.Module) -> dict[str, nn.Module]:
    """The Hugging Face models that a model is or contains, by name.

    Nothing is imported: where transformers was not, no model comes from it.

    >>> hugging_face_models(nn.Linear(2, 2))
    {}
    """
    library = sys.modules.get("transformers.modeling_utils")
    if library is None:
        return {}
    return {n: m for n, m in model.named_modules() if isinstance(m, library.PreTrainedModel)}


@contextmanager
def capture_hugging_face(model: nn.Module, receive: Receiver) -> Iterator[None]:
    """Call ``receive(name, view)`` for each Hugging Face attention layer while the block runs.

    A query that may attend to nothing, as padding on the left makes them, is read as attending
    to all keys alike, which is what eager attention does.

    A model with nothing of Hugging Face in it runs as it is:

    >>> with capture_hugging_face(nn.Identity(), print):
    ...     nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """
    if not hugging_face_models(model):
        yield
        return
    registry = sys.modules["transformers.modeling_utils"].AttentionInterface
    before = registry.get_interface
    names = {id(module): name for name, module in model.named_modules()}

    def get_interface(self: Any, attn_implementation: str | None, default: Attend) -> Attend:
        attend = before(self, attn_implementation, default)
        return _read_first(_Reader(attn_implementation), attend, names, receive)

    registry.get_interface = get_interface
    try:
        yield
    finally:
        registry.get_interface = before


def _read_first(
    reader: _Reader, attend: Attend, names: dict[int, str], receive: Receiver
) -> Attend:
    def attention(module: nn.Module, *given: Any, **named: Any) -> Any:
        name = names.get(id(module))
        if name is not None:
            inputs = dict(zip(("query", "key", "value", "attention_mask"), given, strict=False))
            receive(name, reader.view(module, inputs | named))
        return attend(module, *given, **named)

    return attention


@dataclass(frozen=True)
class _Reader:
    """What an implementation makes of its inputs."""

    implementation: str | None

    @property
    def eager(self) -> bool:
        """Whether it is the one in the model's own file."""
        return self.implementation in (None, "eager")

    def view(self, module: nn.Module, inputs: dict[str, Any]) -> AttentionView:
        self._refuse_unreadable(module, inputs)
        queries, keys = inputs["query"].detach(), inputs["key"].detach()
        scaling = inputs.get("scaling")
        temperature = default_temperature(queries.shape[-1]) if scaling is None else 1 / scaling
        mask = self._causal(module, queries, inputs)
        for name in ("attention_mask", "position_bias"):
            if inputs.get(name) is not None:
                mask &= as_mask(inputs[name].detach())
        read = AttentionView(queries, keys, mask, float(temperature), weights=None, turned_rank=0)
        return _open_blind_rows(self._capped(read, inputs.get("softcap")))

    def _causal(self, module: nn.Module, queries: Tensor, inputs: dict[str, Any]) -> Mask:
        """Eager attention has no rule beyond its mask; the others have where no mask is given."""
        asked = inputs.get("is_causal")
        asked = getattr(module, "is_causal", True) if asked is None else asked
        unmasked = inputs.get("attention_mask") is None and not self.eager
        return Causal() if unmasked and asked and queries.shape[-2] > 1 else EVERYTHING

    def _capped(self, read: AttentionView, cap: float | None) -> AttentionView:
        """Logits l that the layer bends to c·tanh(l/c), before its mask: the bend as a bias."""
        if cap is None or not self.eager:
            return read
        plain = read.queries.double() @ read.shared_keys.double().mT / read.temperature
        return replace(read, mask=Additive(cap * torch.tanh(plain / cap) - plain) & read.mask)

    def _refuse_unreadable(self, module: nn.Module, inputs: dict[str, Any]) -> None:
        layer = type(module).__name__
        if self.implementation not in READABLE:
            raise BadInputError(
                f"{layer} attends by {self.implementation!r}, whose masks cannot be read",
                hint="call model.set_attn_implementation('sdpa') first",
            )
        if inputs.get("s_aux") is not None:
            raise BadInputError(
                f"{layer} keeps a share of every row for a sink, so its weights are no softmax "
                "of q·k",
                hint="take the weights themselves, with output_attentions=True",
            )


def _open_blind_rows(read: AttentionView) -> AttentionView:
    """Rows that mask every key made uniform: queries of zero, and no mask."""
    shape = torch.Size((*read.queries.shape[:-1], read.keys.shape[-2]))
    grid = Grid.whole(shape, read.queries.device)
    blind = ~read.mask.allowed(grid).any(-1, keepdim=True)
    if not bool(blind.any()):
        return read
    bias = read.mask.apply(torch.zeros(shape, dtype=torch.float64, device=grid.device), grid)
    return replace(
        read,
        queries=read.queries.masked_fill(blind, 0),
        mask=Additive(bias.masked_fill(blind, 0)),
    )
