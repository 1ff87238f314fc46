"""How a model is reduced and judged, as one record; ``reduce`` describes the fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.reduction.families import Keys
from headwise.reduction.sizes import Kind

#: Shares of the KV cache at which ``curve`` scores the model.
CURVE = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3)


@dataclass(frozen=True)
class Settings:
    """Everything that is asked of a reduction except the budget and where results go."""

    keys: Keys | None = None
    only: Kind | None = None
    step: int = 8
    tokens: int | None = None
    held_out: int = 4096
    length: int | None = None
    heal: int = 0
    curve: Sequence[float] = ()
    context: int = 2048
    device: str = "cpu"
    seed: int = 0

    def described(self) -> dict[str, str | int | None]:
        """What the result store says of a reduction, besides the budget."""
        return {"keys": self.keys, "only": self.only, "step": self.step, "heal": self.heal}
