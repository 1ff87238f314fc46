"""Refuse tensors whose numbers are not all stored, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.memory import ALWAYS_TRIED, refuse_if_too_large

_STRIDED = torch.strided


def plain(values: Any, name: str) -> Tensor:
    """Return an ordinary tensor without its gradients, or raise.

    Args:
        values: A tensor, an array, or what NumPy makes one of.
        name: What to call it in the error.

    Returns:
        The tensor, detached, with the numbers that it stands for in its memory.

    Raises:
        BadInputError: If it holds no numbers, or is sparse, quantised, nested or on device meta.
        TooLargeError: If it repeats few stored numbers so often that a copy would not fit.

    Example:
        >>> plain(torch.eye(2), "the matrix").shape
        torch.Size([2, 2])
        >>> plain(torch.eye(2).to_sparse(), "the matrix")
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: the matrix is a tensor of layout sparse_coo; pass ...
    """
    tensor = values if isinstance(values, Tensor) else _from_array(values, name)
    # In the order of their cost: this runs before every count.
    if tensor.layout is not _STRIDED or tensor.is_quantized or tensor.is_meta or tensor.is_nested:
        raise BadInputError(
            f"{name} is a tensor {_unusual(tensor)}",
            hint="pass an ordinary one: tensor.to_dense(), tensor.dequantize() or padded",
        )
    copied = 8 * tensor.numel()
    # An expanded tensor repeats a few stored numbers; a copy of it stores each repetition.
    if copied > ALWAYS_TRIED and tensor.nbytes > tensor.untyped_storage().nbytes():
        refuse_if_too_large(
            f"the {'×'.join(map(str, tensor.shape))} tensor in full ({name} repeats few numbers)",
            copied,
            tensor.device,
            "pass only the part you need",
        )
    # Views such as z.conj().imag hold the numbers with the other sign until this is resolved.
    stored = tensor.resolve_neg()
    return stored.detach() if stored.requires_grad else stored


def _from_array(values: Any, name: str) -> Tensor:
    if isinstance(values, np.ma.MaskedArray):
        raise BadInputError(f"{name} is a masked array", hint="pass values.filled(0), or a part")
    try:
        array = np.asarray(values)
        # Torch reads neither negative strides nor the other byte order.
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        forward = native if min(native.strides, default=0) >= 0 else native.copy()
        return torch.as_tensor(forward)
    except (TypeError, ValueError, RuntimeError):
        found = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise BadInputError(
            f"{name} is not a numeric array but {found}",
            hint="pass a torch tensor or a numpy array of floats",
        ) from None


def _unusual(tensor: Tensor) -> str:
    if tensor.is_nested:
        return "of matrices of several shapes"
    if tensor.layout is not _STRIDED:
        return f"of layout {str(tensor.layout).removeprefix('torch._').removeprefix('torch.')}"
    if tensor.is_quantized:
        return f"of the quantised dtype {str(tensor.dtype).removeprefix('torch.')}"
    return "without numbers (device meta)"
