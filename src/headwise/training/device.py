"""Check that a device exists and can compute."""

from __future__ import annotations

import torch

from headwise.errors import BadInputError, ParameterError


def known_device(name: str) -> torch.device:
    """Return the device of this name, which may be on another machine; raise if the name is bad."""
    try:
        return torch.device(name)
    except RuntimeError:
        raise ParameterError(
            f"expected `device` cpu, cuda or cuda:1, got {name!r}", hint="pass one of these"
        ) from None


def refuse_absent(name: str) -> None:
    """Raise if this machine cannot compute on the device."""
    device = known_device(name)
    try:
        torch.zeros(1, device=device).tolist()
    except (RuntimeError, AssertionError, ImportError):
        there = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise BadInputError(
            f"there is no device {name!r} on this machine", hint=f"pass {there}"
        ) from None


def can_round(device: str, precision: str) -> bool:
    """Whether the device supports products in this precision: only GPUs have TF32."""
    return precision != "tf32" or known_device(device).type == "cuda"
