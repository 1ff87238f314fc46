"""Run many models of one shape as one: stacked parameters, one call.

Any module goes through ``torch.func.vmap``. Models made of an encoder stack have a faster form
without vmap (``stacks``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from headwise.attention.weighting import trusted_masks
from headwise.errors import BadInputError

Parameters = Mapping[str, Tensor]


@runtime_checkable
class Stacked(Protocol):
    """One call for all members: parameters (M, …) and inputs (M, b, …) in, outputs out."""

    def __call__(self, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the outputs of every member for its own inputs."""
        ...


class Folding(TorchFunctionMode):
    """Fold members into rows and batches, so that a vectorised call makes few large products.

    Under ``vmap`` a linear map of (b, n, d) tokens would copy the weight of each member for each of
    the b sequences; on a matrix of b·n rows it is one batched product. Attention has no vectorised
    rule on every device; with members folded into the batch it needs none.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Intercept linear maps and attention."""
        given = kwargs or {}
        if func is nn.functional.linear:
            return _of_rows(*args, **given)
        if func is scaled_dot_product_attention:
            return _attend(*args, **given)
        return func(*args, **given)


def _of_rows(tokens: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if tokens.ndim < 2:
        return _of_rows(tokens.unsqueeze(0), weight, bias).squeeze(0)
    rows = tokens.flatten(0, -2)
    mapped = rows @ weight.mT if bias is None else torch.addmm(bias, rows, weight.mT)
    return mapped.unflatten(0, tokens.shape[:-1])


def _attend(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, **given: Any
) -> Tensor:
    return _FoldedAttention.apply(q, k, v, attn_mask, given)  # pyright: ignore[reportReturnType]


class _FoldedAttention(torch.autograd.Function):
    """Attention whose vectorised form folds members into the batch.

    Only that form is used. It consists of plain calls, which have their own gradients.
    """

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, given: dict) -> Tensor:
        return scaled_dot_product_attention(q, k, v, mask, **given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any, in_dims: tuple, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, given: dict
    ) -> tuple[Tensor, int]:
        members = info.batch_size
        q, k, v = (
            _folded(t, axis, members) for t, axis in zip((q, k, v), in_dims[:3], strict=True)
        )
        if mask is not None and in_dims[3] is not None:
            mask = _folded_mask(mask.movedim(in_dims[3], 0), len(q) // members)
        mixed = scaled_dot_product_attention(q, k, v, mask, **given)
        return mixed.unflatten(0, (members, -1)), 0


def _folded(tensor: Tensor, axis: int | None, members: int) -> Tensor:
    if axis is None:
        return tensor.expand(members, *tensor.shape).flatten(0, 1)
    return tensor.movedim(axis, 0).flatten(0, 1)


def _folded_mask(mask: Tensor, batch: int) -> Tensor:
    """Reshape a mask (M, …, n, m), with up to batch and heads between, to (M·b, …, n, m)."""
    missing = 5 - mask.ndim
    mask = mask.reshape(len(mask), *(1,) * missing, *mask.shape[1:])
    return mask.expand(-1, batch, -1, -1, -1).flatten(0, 1)


class StackedModules:
    """Any modules: members of a variant in one vectorised call, variants one after another."""

    def __init__(self, models: Sequence[nn.Module], groups: Sequence[tuple[int, int]]) -> None:
        self.groups = tuple(groups)
        self.templates = tuple(copy.deepcopy(models[first]) for first, _ in groups)

    def __call__(self, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the outputs of every member for its own inputs."""
        answers = [
            _together(
                template,
                {name: value[first:end] for name, value in parameters.items()},
                tuple(value[first:end] for value in inputs),
            )
            for template, (first, end) in zip(self.templates, self.groups, strict=True)
        ]
        return answers[0] if len(answers) == 1 else torch.cat(answers)


def _together(template: nn.Module, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
    def alone(parameters: dict[str, Tensor], *inputs: Tensor) -> Tensor:
        with Folding(), trusted_masks():
            return functional_call(template, parameters, inputs)

    return vmap(alone)(dict(parameters), *inputs)


def of_variants(
    tensors: Sequence[Tensor], groups: Sequence[tuple[int, int]]
) -> list[tuple[Tensor, ...]]:
    """Split tensors by variant in one call, so that the gradient is a single concatenation.

    The gradient of a slice would be a full-size tensor of zeros for each variant.

    Returns:
        For each variant its part of every tensor.
    """
    sizes = [end - first for first, end in groups]
    return list(zip(*(tensor.split(sizes) for tensor in tensors), strict=True))


def stack(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Stack the parameters of all models by name, members first."""
    tables = [dict(model.named_parameters()) for model in models]
    shapes = [{name: value.shape for name, value in table.items()} for table in tables]
    for other in shapes[1:]:
        if other != shapes[0]:
            raise BadInputError(
                f"the models have different parameters: {_difference(shapes[0], other)}",
                hint="train models of one shape together, others in another run",
            )
    return {name: torch.stack([table[name].detach() for table in tables]) for name in tables[0]}


def _difference(one: dict[str, torch.Size], other: dict[str, torch.Size]) -> str:
    name = next(n for n in [*one, *other] if one.get(n) != other.get(n))
    sizes = [tuple(table[name]) if name in table else "absent" for table in (one, other)]
    return f"{name} is {sizes[0]} in one and {sizes[1]} in another"
