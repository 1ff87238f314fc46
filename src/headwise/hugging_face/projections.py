"""Find W_Q and W_K of a Hugging Face layer, and check that they make its queries and keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.projections import HeadWeights

#: How families name the two linear maps of an attention layer.
PAIRS = (("query", "key"), ("q_proj", "k_proj"), ("q_lin", "k_lin"), ("q", "k"))

#: One map that makes queries, keys and values together, stored as (inputs, outputs).
JOINT = "c_attn"


class Projections:
    """The outputs of the maps that make queries and keys, as recorded in a forward pass."""

    def __init__(self) -> None:
        self._outputs: dict[int, Tensor] = {}

    @contextmanager
    def recording(self, model: nn.Module) -> Iterator[None]:
        """Record the outputs of every such map of the model while the block runs."""
        maps = [found for module in model.modules() for found in _maps(module)]
        hooks = [each.register_forward_hook(self._keep) for each in maps]
        try:
            yield
        finally:
            self._outputs.clear()
            for hook in hooks:
                hook.remove()

    def weights(self, module: nn.Module, queries: Tensor, keys: Tensor) -> HeadWeights | None:
        """Return W_Q and W_K if the queries and keys are their outputs, up to a factor.

        Rotary positions and norms change queries and keys after the maps: then there is no such
        pair of matrices.
        """
        maps = _maps(module)
        outputs = [self._outputs[id(each)] for each in maps if id(each) in self._outputs]
        if not maps or len(outputs) < len(maps):
            return None
        pairs = [(output, each.weight) for output, each in zip(outputs, maps, strict=True)]
        if len(maps) == 1:
            width, (output, weight) = queries.shape[1] * queries.shape[-1], pairs[0]
            pairs = list(zip(output.split(width, -1), weight.T.split(width), strict=True))
        found = [
            _by_head(weight, output, heads)
            for (output, weight), heads in zip(pairs, (queries, keys), strict=False)
        ]
        return None if found[0] is None or found[1] is None else HeadWeights(found[0], found[1])

    def _keep(self, module: nn.Module, _: Any, output: Tensor) -> None:
        self._outputs[id(module)] = output.detach()


def _maps(module: nn.Module) -> list[Any]:
    """Return the maps that make queries and keys: two, or one for both."""
    for names in PAIRS:
        found = [getattr(module, name, None) for name in names]
        if all(isinstance(each, nn.Linear) for each in found):
            return found
    joint = getattr(module, JOINT, None)
    return [joint] if joint is not None and hasattr(joint, "nf") else []


def _by_head(weight: Tensor, output: Tensor, heads: Tensor) -> Tensor | None:
    """Return the map as (heads, r, d), times the factor between output and heads, if one fits."""
    batch, count, length, rank = heads.shape
    if output.numel() != heads.numel() or output.shape[:2] != (batch, length):
        return None
    made = output.unflatten(-1, (count, rank)).transpose(1, 2).double()
    factor = (made * heads).sum() / made.square().sum()
    close = torch.allclose(heads.double(), factor * made, rtol=1e-3, atol=1e-6)
    return factor.to(weight) * weight.detach().unflatten(0, (count, rank)) if close else None
