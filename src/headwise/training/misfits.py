"""Refuse what cannot be trained on a task, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from headwise.errors import BadInputError, HeadwiseError

#: A model from a seed.
Builder = Callable[[int], nn.Module]


def refuse_no_builder(variants: Mapping[str, Builder]) -> None:
    """A shape, or a model, is no function that builds one."""
    for name, build in variants.items():
        if not callable(build):
            raise BadInputError(
                f"variant {name!r} is {build!r}, which builds nothing",
                hint="pass a function from a seed to a model, such as NeighbourShape().build",
            )


@torch.no_grad()
def refuse_misfits(variants: Mapping[str, Builder], inputs: Sequence[Tensor]) -> None:
    """Give each model one example alone, on the CPU: what a stack of them says names none.

    The inputs have an axis for members and one for examples before their own.
    """
    example = [part[0, :1].cpu() for part in inputs]
    for name, build in variants.items():
        try:
            build(0).to(example[0].dtype)(*example)
        except (RuntimeError, TypeError, HeadwiseError) as error:
            sizes = " and ".join(str(tuple(part.shape[1:])) for part in example)
            reason = str(error).splitlines()[0]
            raise BadInputError(
                f"variant {name!r} does not take the task's inputs of shape {sizes}: {reason}",
                hint="build it for the sizes of the task",
            ) from error
