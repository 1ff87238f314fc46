"""Check that a device exists and can compute."""

from __future__ import annotations

import torch

from headwise.errors import BadInputError


def known_device(name: str) -> torch.device:
    """Return the device of this name, which may be on another machine; raise if the name is bad."""
    try:
        return torch.device(name)
    except RuntimeError:
        raise _absent(name) from None


def refuse_absent(name: str) -> None:
    """Raise if this machine cannot compute on the device."""
    try:
        torch.zeros(1, device=known_device(name)).tolist()
    except (RuntimeError, AssertionError, ImportError):
        raise _absent(name) from None


def _absent(name: str) -> BadInputError:
    there = "cpu or cuda" if torch.cuda.is_available() else "cpu"
    return BadInputError(f"there is no device {name!r} on this machine", hint=f"pass {there}")


def can_round(device: str, precision: str) -> bool:
    """Whether the device supports products in this precision: only GPUs have TF32."""
    return precision != "tf32" or known_device(device).type == "cuda"
