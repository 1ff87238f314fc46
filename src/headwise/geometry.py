"""HeadGeometry: the number of heads and their rank, with checks and costs."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from headwise.checks import whole
from headwise.errors import ParameterError

__all__ = ["HeadGeometry", "LatentGeometry", "divisors", "read_geometries", "usual"]

#: The usual head dimension.
USUAL_HEAD_DIM = 64

#: Bytes of a number in the KV cache: bfloat16 or float16.
CACHE_NUMBER = 2


@dataclass(frozen=True)
class HeadGeometry:
    """The shape of an attention layer: width d, H heads, H_kv key-value heads, ranks r and v.

    Args:
        width: The width d of the model.
        heads: The number of query heads H.
        kv_heads: The number of key-value heads H_kv; it divides ``heads``.
        qk_rank: The head dimension r of queries and keys.
        v_rank: The head dimension v of values.

    Raises:
        ParameterError: If a number is not positive, or ``kv_heads`` does not divide ``heads``.

    Example:
        >>> HeadGeometry.standard(512, heads=8)
        HeadGeometry(width=512, heads=8, kv_heads=8, qk_rank=64, v_rank=64)
    """

    width: int
    heads: int
    kv_heads: int
    qk_rank: int
    v_rank: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                least = 0 if field.name == "rope_rank" else 1
                object.__setattr__(self, field.name, whole(field.name, value, least))
        if self.heads % self.kv_heads:
            raise ParameterError(
                f"expected kv_heads that divides {self.heads} heads, got {self.kv_heads}",
                hint=f"choose kv_heads from {_listed(divisors(self.heads))}",
            )

    @classmethod
    def standard(cls, width: int, heads: int) -> HeadGeometry:
        """Make the usual geometry with r = v = d/H, as ``torch.nn.MultiheadAttention`` has it.

        Args:
            width: The width d of the model.
            heads: The number of heads H; it divides the width.

        Returns:
            The geometry.

        Raises:
            ParameterError: If ``heads`` does not divide ``width``.

        Example:
            >>> HeadGeometry.standard(64, heads=4).qk_rank
            16
        """
        if heads < 1 or width % heads:
            raise ParameterError(
                f"expected heads that divide the width {width}, got {heads}",
                hint=f"choose heads from {_listed(divisors(width))}, or any number of heads "
                "with HeadGeometry.free(width, heads, rank)",
            )
        return HeadGeometry.free(width, heads, width // heads)

    @classmethod
    def free(cls, width: int, heads: int, rank: int) -> HeadGeometry:
        """Make a geometry with any number of heads of any rank, for queries, keys and values alike.

        Args:
            width: The width d of the model.
            heads: The number of heads H.
            rank: The head dimension of queries, keys and values.

        Returns:
            The geometry.

        Example:
            >>> HeadGeometry.free(64, heads=4096, rank=1).parameters
            1048576
        """
        return HeadGeometry(width, heads, heads, rank, rank)

    def grouped(self, kv_heads: int) -> HeadGeometry:
        """Return the same geometry with fewer key-value heads.

        Args:
            kv_heads: The number of key-value heads; 1 is multi-query attention.

        Returns:
            A geometry with the same width, heads and ranks.

        Example:
            >>> HeadGeometry.standard(64, heads=4).grouped(2).kv_heads
            2
        """
        return replace(self, kv_heads=kv_heads)

    @property
    def group(self) -> int:
        """Number of query heads that share one key-value head."""
        return self.heads // self.kv_heads

    @property
    def parameters(self) -> int:
        """Number of weights without biases: d·(H·r + H_kv·r + H_kv·v + H·v)."""
        queries, outputs = self.heads * self.qk_rank, self.heads * self.v_rank
        return self.width * (queries + self.kv_heads * (self.qk_rank + self.v_rank) + outputs)

    @property
    def biases(self) -> int:
        """Number of weights that biases on queries, keys, values and output would add."""
        shared = self.kv_heads * (self.qk_rank + self.v_rank)
        return self.heads * self.qk_rank + shared + self.width

    def flops_per_token(self, context: int) -> int:
        """Count projections, logits and weighted sum: 2·parameters + 2·n·H·(r + v).

        Args:
            context: The number of tokens n that are attended to.

        Returns:
            The number of floating-point operations for one token.

        Raises:
            ParameterError: If it is no whole number from 0 on.

        Example:
            >>> HeadGeometry.standard(64, heads=4).flops_per_token(context=16)
            36864
        """
        mixing = 2 * whole("`context`", context, 0) * self.heads * (self.qk_rank + self.v_rank)
        return 2 * self.parameters + mixing

    def cache_bytes_per_token(self, bytes_per_number: int = CACHE_NUMBER) -> int:
        """Return the size of the KV cache, b·H_kv·(r + v).

        Args:
            bytes_per_number: The size b of one number: by default 2, for float16 and bfloat16.

        Returns:
            Bytes per token and layer.

        Raises:
            ParameterError: If it is no whole number from 1 on.

        Example:
            >>> HeadGeometry.standard(64, heads=4).grouped(1).cache_bytes_per_token()
            64
        """
        size = whole("`bytes_per_number`", bytes_per_number)
        return size * self.kv_heads * (self.qk_rank + self.v_rank)


@dataclass(frozen=True)
class LatentGeometry(HeadGeometry):
    """The shape of a multi-head latent attention layer: one latent vector per token gives K and V.

    Args:
        width: The width d of the model.
        heads: The number of heads H.
        kv_heads: Equal to ``heads``: the latent is expanded to every head.
        qk_rank: The head dimension r of queries and keys, rotary part included.
        v_rank: The head dimension v of values.
        kv_latent: The width of the latent vector of keys and values.
        q_latent: The width of the compressed query, or None if queries are not compressed.
        rope_rank: How many of the ``qk_rank`` dimensions carry the rotary position. All heads
            share this part of the key.

    Raises:
        ParameterError: If a number is out of range or ``kv_heads`` differs from ``heads``.

    Example:
        >>> geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
        >>> geometry.content_rank, geometry.cache_bytes_per_token()
        (16, 80)
    """

    kv_latent: int
    q_latent: int | None
    rope_rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kv_heads != self.heads:
            raise ParameterError(
                f"expected kv_heads={self.heads} for latent attention, got {self.kv_heads}",
                hint=f"pass kv_heads={self.heads}, and choose kv_latent for the cache",
            )
        if self.rope_rank % 2 or self.rope_rank >= self.qk_rank:
            raise ParameterError(
                f"expected an even rope_rank below qk_rank {self.qk_rank}, got {self.rope_rank}",
                hint=f"choose rope_rank from {_listed(list(range(0, self.qk_rank, 2)))}",
            )

    @property
    def content_rank(self) -> int:
        """Part of the query-key rank without rotary position."""
        return self.qk_rank - self.rope_rank

    @property
    def parameters(self) -> int:
        """Number of weights without biases and norms: queries, latent, expansion and output."""
        queries = self.heads * self.qk_rank
        asking = (
            self.width * queries
            if self.q_latent is None
            else self.q_latent * (self.width + queries)
        )
        latent = self.width * (self.kv_latent + self.rope_rank)
        expansion = self.kv_latent * self.heads * (self.content_rank + self.v_rank)
        return asking + latent + expansion + self.width * self.heads * self.v_rank

    @property
    def biases(self) -> int:
        """Number of biases on the maps that read tokens and on the output, as in DeepSeek."""
        asking = self.heads * self.qk_rank if self.q_latent is None else self.q_latent
        return asking + self.kv_latent + self.rope_rank + self.width

    def cache_bytes_per_token(self, bytes_per_number: int = CACHE_NUMBER) -> int:
        """Return the size of the KV cache per token: b·(kv_latent + rope_rank)."""
        return whole("`bytes_per_number`", bytes_per_number) * (self.kv_latent + self.rope_rank)


def usual(width: int) -> HeadGeometry:
    """Return the usual geometry: heads of dimension 64 that fill the width.

    If 64 does not divide the width, the head dimension is the divisor nearest to 64. A width
    without a divisor from 43 to 96, which is 64 up to a factor of 1.5, has width / 64 heads of
    dimension 64, or one head if it is smaller.

    Args:
        width: The width of the model.

    Returns:
        The geometry.

    Example:
        >>> [(usual(width).heads, usual(width).qk_rank) for width in (256, 48, 160, 257)]
        [(4, 64), (1, 48), (2, 80), (4, 64)]
    """
    rank = min(
        (rank for rank in range(43, 97) if width % rank == 0),
        key=lambda rank: max(rank / USUAL_HEAD_DIM, USUAL_HEAD_DIM / rank),
        default=min(USUAL_HEAD_DIM, width),
    )
    return HeadGeometry.free(width, width // rank, rank)


def read_geometries(text: str, width: int) -> list[HeadGeometry]:
    """Read geometries written as heads x rank; after a slash stands another rank of values.

    Args:
        text: Geometries between commas, such as "4x16,4x8/16".
        width: The width of the model.

    Returns:
        The geometries, in their order.

    Raises:
        ParameterError: If a part of the text is no geometry.

    Example:
        >>> [(g.heads, g.qk_rank, g.v_rank) for g in read_geometries("4x16,4x8/16", 64)]
        [(4, 16, 16), (4, 8, 16)]
    """
    found = []
    for word in text.split(","):
        sizes = re.fullmatch(r"([1-9]\d*)\s*[x×]\s*([1-9]\d*)(?:/([1-9]\d*))?", word.strip())
        if sizes is None:
            raise ParameterError(
                f"expected `candidates` as heads x rank, got {word!r}",
                hint="pass numbers above 0, such as 4x16,8x8 or 4x8/16",
            )
        heads, rank, v_rank = sizes.groups()
        given = {"qk_rank": int(rank), "v_rank": int(v_rank or rank)}
        found.append(HeadGeometry(width, heads=int(heads), kv_heads=int(heads), **given))
    return found


def divisors(number: int) -> list[int]:
    """Return all divisors in ascending order."""
    return [part for part in range(1, number + 1) if number % part == 0]


def _listed(choices: list[int]) -> str:
    if len(choices) <= 12:
        return ", ".join(map(str, choices))
    return f"{', '.join(map(str, choices[:6]))}, … {choices[-1]}"
