"""Refuse models that cannot be trained on a task, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from headwise.errors import BadInputError, HeadwiseError

#: A model from a seed.
Builder = Callable[[int], nn.Module]


def refuse_no_builder(variants: Mapping[str, Builder]) -> None:
    """Raise if a shape or a model is passed instead of a function that builds one."""
    for name, build in variants.items():
        if not callable(build):
            raise BadInputError(
                f"variant {name!r} is {build!r}, which builds nothing",
                hint="pass a function from a seed to a model, such as NeighbourShape().build",
            )


@torch.no_grad()
def refuse_misfits(variants: Mapping[str, Builder], inputs: Sequence[Tensor]) -> None:
    """Run each model alone on one example on the CPU, so that an error names the model.

    The inputs have an axis for members and one for examples before their own.

    Raises:
        BadInputError: If a model does not fit the task.
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
