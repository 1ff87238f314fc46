"""What rank does hardmax attention of a random head have? By simulation, with its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from headwise.runs import Row, Spec, device

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from headwise.theory.simulated_heads import Ensemble

#: How queries and keys are made: drawn directly, or inputs times Gaussian weights.
EnsembleName = Literal[
    "independent",
    "orthonormal inputs",
    "almost orthonormal inputs",
    "nearly orthonormal inputs",
]

#: Inputs with orthogonal rows, which need a width of at least the number of rows.
_NEED_ROOM = ("orthonormal inputs", "almost orthonormal inputs")


class SimulateRank(Spec, frozen=True):
    """Hardmax rank over length of random heads: mean, standard error, draws.

    ``independent`` draws N(0, 1) queries and keys. The others multiply inputs of ``width`` (the
    length by default) with N(0, 1) weights, all drawn again for each head: orthonormal rows, or
    independent unit rows. ``dtype`` is that of the scores whose arg-max is taken.

    >>> row = SimulateRank(tokens=100, head_dim=64, draws=50).ask()
    >>> abs(row["mean"] - 0.592) < 4 * row["stderr"]
    True
    """

    kind: Literal["simulate_rank"] = "simulate_rank"
    revision: Literal[1] = 1
    tokens: PositiveInt
    head_dim: PositiveInt
    ensemble: EnsembleName = "independent"
    width: PositiveInt | None = None
    draws: Annotated[int, Field(ge=2)] = 32
    dtype: Literal["float64", "float32"] = "float64"
    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> SimulateRank:
        if self.ensemble == "independent" and self.width is not None:
            raise ValueError(
                f"expected no width for independent queries and keys, got {self.width}; leave it "
                "out: they have no inputs"
            )
        if self.ensemble in _NEED_ROOM and self._width < self.tokens:
            raise ValueError(
                f"expected a width of at least {self.tokens} for as many orthonormal rows, got "
                f"{self._width}; pass a larger width or fewer tokens"
            )
        return self

    def ask(self) -> Row:
        """Return mean and standard error of rank over length, and the number of heads drawn."""
        from headwise.theory.montecarlo import simulate_ratio

        found = simulate_ratio(self._heads(), self.draws, self.seed)
        return {"mean": found.mean, "stderr": found.stderr, "draws": found.draws}

    @property
    def _width(self) -> int:
        return self.tokens if self.width is None else self.width

    def _heads(self) -> Ensemble:
        import torch

        from headwise.theory import simulated_heads

        where, n, r = torch.device(device()), self.tokens, self.head_dim
        if self.ensemble == "independent":
            drawn: Ensemble = simulated_heads.IndependentHead(n, r, device=where)
        else:
            inputs = {
                "orthonormal inputs": simulated_heads.orthonormal,
                "almost orthonormal inputs": simulated_heads.almost_orthonormal,
                "nearly orthonormal inputs": simulated_heads.nearly_orthonormal,
            }[self.ensemble]
            drawn = simulated_heads.RandomInputHead(n, r, self._width, inputs, where)
        return drawn if self.dtype == "float64" else _Rounded(drawn, torch.float32)


@dataclass(frozen=True, eq=False)
class _Rounded:
    """Heads drawn in float64 and scored in another dtype, which halves the memory traffic."""

    drawn: Ensemble
    dtype: torch.dtype

    @property
    def length(self) -> int:
        """The number of keys."""
        return self.drawn.length

    @property
    def device(self) -> torch.device:
        """Where the heads are drawn."""
        return self.drawn.device

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return queries and keys, rounded."""
        queries, keys = self.drawn.draw(heads, generator)
        return queries.to(self.dtype), keys.to(self.dtype)
