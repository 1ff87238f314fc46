"""The hardmax rank of long random heads: with many keys, one draw is nearly certain."""

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

#: Below this length use ``simulate_rank``: many short draws are cheaper and better.
SHORTEST = 1024

#: Groups of keys whose shares give the standard error.
GROUPS = 64

#: The precision of the queries and keys that are drawn.
Drawn = Literal["float64", "float32", "tensorfloat32"]


class SimulateLongRank(Spec, frozen=True):
    """Hardmax rank over length of long heads with N(0, 1) queries and keys.

    Whether one key is picked depends little on the others, so the keys of one head are a sample: 64
    groups of them give the standard error, a little too large because keys compete.
    ``tensorfloat32`` rounds queries and keys to 11 significant bits and takes their products
    exactly: it is the exact arg-max of a slightly different head.

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
        """Return mean and standard error of rank over length, over all heads drawn."""
        generator = stream(self.seed, "long hardmax", device=device())
        shares = torch.cat([self._shares(generator) for _ in range(self.draws)])
        return {
            "mean": float(shares.mean()),
            "stderr": float(shares.std()) / shares.numel() ** 0.5,
        }

    def _shares(self, generator: torch.Generator) -> Float[Tensor, " groups"]:
        """Return the share of keys that are picked, in each group of one head's keys."""
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
    """Round float32 numbers to the 11 significant bits that TensorFloat-32 keeps."""
    # Add half a step, then clear the 13 low bits; a carry into the exponent is correct.
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@contextmanager
def _float32_products(precision: Literal["tf32", "ieee"]) -> Iterator[None]:
    """Set how a GPU multiplies float32: tensor cores, exact for 11 bits, or plain units."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
