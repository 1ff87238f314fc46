"""How a model is reduced and judged, as one record; ``reduce`` describes the fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from headwise.checks import of_type, one_of, positive, whole
from headwise.errors import ParameterError
from headwise.reduction.families import Keys
from headwise.reduction.sizes import KINDS, Kind

#: Shares of the KV cache at which ``curve`` scores the model.
CURVE = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3)

#: The least values of the whole numbers.
_LEAST = {"step": 1, "tokens": 1, "held_out": 1, "length": 8, "heal": 0, "context": 0, "seed": 0}


@dataclass(frozen=True)
class Settings:
    """Everything that is asked of a reduction except the budget and where results go.

    Raises:
        ParameterError: If a field is of the wrong type or out of range.
    """

    keys: Keys | None = None
    only: Kind | None = None
    step: int = 8
    tokens: int | None = None
    held_out: int = 4096
    length: int | None = None
    heal: int = 0
    curve: Sequence[float | int] = ()
    context: int = 2048
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.keys is not None:
            one_of("`keys`", self.keys, get_args(Keys))
        if self.only is not None:
            one_of("`only`", self.only, KINDS)
        of_type("`device`", self.device, str, "a name such as 'cpu'")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None or name not in ("tokens", "length"):
                object.__setattr__(self, name, whole(f"`{name}`", value, least))

    def described(self) -> dict[str, str | int | None]:
        """What the result store says of a reduction, besides the budget."""
        return {"keys": self.keys, "only": self.only, "step": self.step, "heal": self.heal}


def shares_of_curve(curve: bool | Sequence[float | int]) -> Sequence[float]:
    """Return the shares of the KV bytes at which a model is scored.

    Args:
        curve: Shares, or whether to take the usual ones.

    Returns:
        The shares.

    Raises:
        ParameterError: If one is no share above 0 and at most 1.
    """
    if isinstance(curve, bool):
        return CURVE if curve else ()
    # A text is a sequence too, of letters.
    kinds = bool if isinstance(curve, str | bytes) else Sequence
    of_type("`curve`", curve, kinds, "True or shares such as [0.75, 0.5]")
    shares = tuple(positive("share in `curve`", share, example=0.5) for share in curve)
    if shares and max(shares) > 1:
        raise ParameterError(
            f"expected shares in `curve` of at most 1, got {max(shares):g}",
            hint="pass for example [0.75, 0.5]",
        )
    return shares
