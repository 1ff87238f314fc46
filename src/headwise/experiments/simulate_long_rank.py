"""The hardmax rank of long random heads: so many keys that a single draw is nearly certain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from headwise.attention.operator import streaming_argmax
from headwise.randomness import stream
from headwise.runs import Row, Spec, device
from headwise.shapes import Float

#: Below this length many short draws are cheaper and better: ``simulate_rank``.
SHORTEST = 1024

#: Groups of keys whose shares give the standard error.
GROUPS = 64

#: The precision of the queries and keys that are drawn.
Drawn = Literal["float64", "float32", "tensorfloat32"]


class SimulateLongRank(Spec, frozen=True):
    """Hardmax rank over length of long heads with N(0, 1) queries and keys.

    Whether one key is picked says little of whether another is, so the keys of one head are a
    sample by themselves: 64 groups of them give the standard error, a little too large because
    keys compete. ``tensorfloat32`` rounds the entries of queries and keys to 11 significant bits
    and takes their products exactly: it is the arg-max of a slightly different head, and not a
    slightly wrong arg-max.

    >>> row = SimulateLongRank(tokens=4096, head_dim=16).ask()
    >>> abs(row["mean"] - 0.227) < 4 * row["stderr"] < 0.04
    True
    """

    kind: Literal["simulate_long_rank"] = "simulate_long_rank"
    revision: Literal[1] = 1
    tokens: Annotated[int, Field(ge=SHORTEST, multiple_of=GROUPS)]
    head_dim: PositiveInt
    draws: PositiveInt = 1
    dtype: Drawn = "float32"
    seed: int = 0

    def ask(self) -> Row:
        """Mean and standard error of rank over length, over all heads drawn."""
        generator = stream(self.seed, "long hardmax", device=device())
        shares = torch.cat([self._shares(generator) for _ in range(self.draws)])
        return {
            "mean": float(shares.mean()),
            "stderr": float(shares.std()) / shares.numel() ** 0.5,
        }

    def _shares(self, generator: torch.Generator) -> Float[Tensor, " groups"]:
        """The share of keys that are picked, in each group of one head's keys."""
        queries, keys = self._drawn(generator), self._drawn(generator)
        with _float32_products("tf32" if self.dtype == "tensorfloat32" else "ieee"):
            picked = streaming_argmax(queries, keys, equals="exactly")
        used = torch.zeros(self.tokens, dtype=torch.bool, device=picked.device)
        used[picked] = True
        return used.reshape(GROUPS, -1).double().mean(1).cpu()

    def _drawn(self, generator: torch.Generator) -> Float[Tensor, "n d"]:
        kept = torch.float64 if self.dtype == "float64" else torch.float32
        shape = (self.tokens, self.head_dim)
        drawn = torch.randn(shape, generator=generator, device=generator.device, dtype=kept)
        return tensorfloat32(drawn) if self.dtype == "tensorfloat32" else drawn


def tensorfloat32(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """float32 numbers rounded to the 11 significant bits that TensorFloat-32 keeps.

    >>> (tensorfloat32(torch.tensor([1 + 2**-10, 1 + 2**-12, -3.0])) - 1).tolist()
    [0.0009765625, 0.0, -4.0]
    """
    # Half a step up, then the 13 low bits off; a carry into the exponent is right as it is.
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@contextmanager
def _float32_products(precision: Literal["tf32", "ieee"]) -> Iterator[None]:
    """What a GPU does with float32 factors: tensor cores, exact for 11 bits, or plain units."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
