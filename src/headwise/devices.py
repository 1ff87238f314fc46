"""Where to compute: devices and clusters by name. Importing this module does not import torch."""

from __future__ import annotations

import re

from headwise.errors import BadInputError, ParameterError

__all__ = ["cluster_address", "device_kind"]


def device_kind(name: str) -> str:
    """Return the kind of a device, which may be on another machine.

    Args:
        name: The device, such as "cpu" or "cuda:1".

    Returns:
        Its name without the number.

    Raises:
        ParameterError: If no device has such a name.

    Example:
        >>> device_kind("cuda:1")
        'cuda'
    """
    if not re.fullmatch(r"(cpu|cuda|mps|xpu|xla|meta)(:\d+)?", name):
        raise ParameterError(
            f"expected `device` cpu, cuda or cuda:1, got {name!r}", hint="pass one of these"
        )
    return name.partition(":")[0]


def cluster_address(address: str) -> str:
    """Return the address of a Dask cluster if it has the form of one.

    Args:
        address: "local", "local:4" for four workers, or the address of a scheduler.

    Returns:
        The address.

    Raises:
        ParameterError: If it is none of these.

    Example:
        >>> cluster_address("local:4")
        'local:4'
    """
    if not re.fullmatch(r"local(:[1-9]\d*)?|(tcp|tls)://[^\s/]+:\d+", address):
        raise ParameterError(
            f"expected `cluster` local, local:4, tcp://HOST:PORT or tls://…, got {address!r}",
            hint="pass one of these",
        )
    return address


def refuse_absent(name: str) -> None:
    """Raise if this machine cannot compute on the device."""
    import torch

    device_kind(name)
    try:
        torch.zeros(1, device=name).tolist()
    except (RuntimeError, AssertionError, ImportError):
        there = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise BadInputError(
            f"there is no device {name!r} on this machine", hint=f"pass {there}"
        ) from None
