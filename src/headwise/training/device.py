"""Check that a device of this name exists and can compute."""

from __future__ import annotations

import torch

from headwise.errors import BadInputError


def known_device(name: str) -> torch.device:
    """The device of this name, here or on another machine.

    >>> known_device("cuda:1").index
    1
    """
    try:
        return torch.device(name)
    except RuntimeError:
        raise _absent(name) from None


def refuse_absent(name: str) -> None:
    """Raise the error for a device on which this machine cannot compute.

    >>> refuse_absent("tpu")
    Traceback (most recent call last):
    ...
    headwise.errors.BadInputError: there is no device 'tpu' on this machine; pass cpu...
    """
    try:
        torch.zeros(1, device=known_device(name)).tolist()
    except (RuntimeError, AssertionError, ImportError):
        raise _absent(name) from None


def _absent(name: str) -> BadInputError:
    there = "cpu or cuda" if torch.cuda.is_available() else "cpu"
    return BadInputError(f"there is no device {name!r} on this machine", hint=f"pass {there}")


def can_round(device: str, precision: str) -> bool:
    """Whether a device takes products in this precision: TF32 is for GPUs alone.

    >>> can_round("cpu", "float32"), can_round("cpu", "tf32")
    (True, False)
    """
    return precision != "tf32" or known_device(device).type == "cuda"
