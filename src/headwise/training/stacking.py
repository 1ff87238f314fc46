"""Many models of one shape as one: stacked parameters, one call.

Any module goes through ``torch.func.vmap``. The heads paper's encoder (``encoder``) and models made
of an encoder stack (``stacks``) have forms written out by hand, which are faster.
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

from headwise.attention.masks import trusted_masks
from headwise.errors import BadInputError

Parameters = Mapping[str, Tensor]


@runtime_checkable
class Stacked(Protocol):
    """One call for all members: parameters (M, …) and inputs (M, b, …) in, answers out."""

    def __call__(self, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        """The answers of every member to its own inputs."""
        ...


class Folding(TorchFunctionMode):
    """Inside a vectorised call, maps and attention see few large problems instead of many small.

    Under ``vmap`` a linear map of (b, n, d) tokens with a weight per member would copy that
    weight for each of the b sequences; of a matrix of b·n rows it is one batched product.
    Attention has no vectorised rule on every device; with members folded into the batch it needs
    none.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Take linear maps and attention aside."""
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
    """Attention whose vectorised form puts members and batch into one axis.

    Only that form is used, and it is made of plain calls, which carry their own gradients.
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
    """(M, …, n, m) with up to batch and heads between, as (M·b, …, n, m)."""
    missing = 5 - mask.ndim
    mask = mask.reshape(len(mask), *(1,) * missing, *mask.shape[1:])
    return mask.expand(-1, batch, -1, -1, -1).flatten(0, 1)


class StackedModules:
    """Any modules, equal members in one vectorised call, variants one after another.

    >>> models = [nn.Linear(3, 2) for _ in range(4)]
    >>> forward = StackedModules(models, [(0, 4)])
    >>> forward(stack(models), (torch.zeros(4, 5, 3),)).shape
    torch.Size([4, 5, 2])
    """

    def __init__(self, models: Sequence[nn.Module], groups: Sequence[tuple[int, int]]) -> None:
        self.groups = tuple(groups)
        self.templates = tuple(copy.deepcopy(models[first]) for first, _ in groups)

    def __call__(self, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        """The answers of every member to its own inputs."""
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
    """Each variant's own members of every tensor.

    Cut in one go, so that the gradient is one joining; that of a slice would be a tensor of zeros
    of the full size for each variant, and their sum.

    >>> [len(own) for (own,) in of_variants([torch.zeros(5, 2)], [(0, 2), (2, 5)])]
    [2, 3]
    """
    sizes = [end - first for first, end in groups]
    return list(zip(*(tensor.split(sizes) for tensor in tensors), strict=True))


def stack(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """The parameters of all models by name, members first.

    >>> {name: value.shape for name, value in stack([nn.Linear(3, 2)] * 4).items()}
    {'weight': torch.Size([4, 2, 3]), 'bias': torch.Size([4, 2])}
    """
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
