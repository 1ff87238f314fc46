"""HeadGeometry: how many heads, of what rank; what is possible and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from headwise.errors import ParameterError


@dataclass(frozen=True)
class HeadGeometry:
    """Width d, heads H, key-value heads H_kv, query-key rank r and value rank v of a layer.

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
            self._refuse_unless_positive(field.name)
        if self.heads % self.kv_heads:
            raise ParameterError(
                f"{self.kv_heads} key-value heads cannot serve {self.heads} heads evenly",
                hint=f"choose kv_heads from {_listed(divisors(self.heads))}",
            )

    def _refuse_unless_positive(self, name: str) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ParameterError(
                f"{name} must be a whole number of at least 1, got {value!r}",
                hint=f"pass for example {name}={_EXAMPLES.get(name, 8)}",
            )

    @classmethod
    def standard(cls, width: int, heads: int) -> HeadGeometry:
        """The usual choice r = v = d/H, which ``torch.nn.MultiheadAttention`` hard-codes.

        >>> HeadGeometry.standard(64, heads=4).qk_rank
        16
        """
        if heads < 1 or width % heads:
            raise ParameterError(
                f"{heads} heads do not divide the width {width}",
                hint=f"choose heads from {_listed(divisors(width))}, or any number of heads "
                "with HeadGeometry.free(width, heads, rank)",
            )
        return HeadGeometry.free(width, heads, width // heads)

    @classmethod
    def free(cls, width: int, heads: int, rank: int) -> HeadGeometry:
        """Any number of heads of any rank, for queries, keys and values alike.

        >>> HeadGeometry.free(64, heads=4096, rank=1).parameters
        1048576
        """
        return HeadGeometry(width, heads, heads, rank, rank)

    def grouped(self, kv_heads: int) -> HeadGeometry:
        """The same with fewer key-value heads (1: multi-query).

        >>> HeadGeometry.standard(64, heads=4).grouped(2).kv_heads
        2
        """
        return replace(self, kv_heads=kv_heads)

    @property
    def group(self) -> int:
        """How many query heads share one key-value head."""
        return self.heads // self.kv_heads

    @property
    def parameters(self) -> int:
        """Weights of the layer, without biases: d·(H·r + H_kv·r + H_kv·v + H·v).

        >>> HeadGeometry.standard(64, heads=4).parameters == 4 * 64**2
        True
        """
        queries, outputs = self.heads * self.qk_rank, self.heads * self.v_rank
        return self.width * (queries + self.kv_heads * (self.qk_rank + self.v_rank) + outputs)

    @property
    def biases(self) -> int:
        """What biases on queries, keys, values and output would add to the parameters.

        >>> HeadGeometry.standard(64, heads=4).biases
        256
        """
        shared = self.kv_heads * (self.qk_rank + self.v_rank)
        return self.heads * self.qk_rank + shared + self.width

    def flops_per_token(self, context: int) -> int:
        """2·parameters + 2·n·H·(r + v): projections, logits and the weighted sum.

        >>> HeadGeometry.standard(64, heads=4).flops_per_token(context=16)
        36864
        """
        mixing = 2 * context * self.heads * (self.qk_rank + self.v_rank)
        return 2 * self.parameters + mixing

    def cache_bytes_per_token(self, bytes_per_number: int) -> int:
        """Key-value cache: b·H_kv·(r + v).

        >>> HeadGeometry.standard(64, heads=4).grouped(1).cache_bytes_per_token(2)
        64
        """
        return bytes_per_number * self.kv_heads * (self.qk_rank + self.v_rank)


@dataclass(frozen=True)
class LatentGeometry(HeadGeometry):
    """Keys and values from one latent vector per token, as in multi-head latent attention.

    ``qk_rank`` is the whole rank of the query-key form; the last ``rope_rank`` of its
    dimensions carry the rotary position (one key part, shared by all heads). ``q_latent`` is
    the width of the compressed query, or None if queries come straight from the token.

    >>> geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
    >>> geometry.content_rank, geometry.cache_bytes_per_token(2)
    (16, 80)
    """

    kv_latent: int
    q_latent: int | None
    rope_rank: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kv_heads != self.heads:
            raise ParameterError(
                f"latent attention expands its latent to all {self.heads} heads, "
                f"got kv_heads={self.kv_heads}",
                hint=f"pass kv_heads={self.heads}, and choose kv_latent for the cache",
            )
        if self.rope_rank % 2 or self.rope_rank >= self.qk_rank:
            raise ParameterError(
                f"rope_rank {self.rope_rank} must be even and below qk_rank {self.qk_rank}",
                hint=f"choose rope_rank from {_listed(list(range(0, self.qk_rank, 2)))}",
            )

    def _refuse_unless_positive(self, name: str) -> None:
        if name == "rope_rank" and self.rope_rank == 0:
            return
        super()._refuse_unless_positive(name)

    @property
    def content_rank(self) -> int:
        """The part of the query-key rank without rotary position."""
        return self.qk_rank - self.rope_rank

    @property
    def parameters(self) -> int:
        """Weights without biases and norms: queries, latent, expansion and output."""
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
        """Biases on the maps that read tokens and on the output, as DeepSeek has them."""
        asking = self.heads * self.qk_rank if self.q_latent is None else self.q_latent
        return asking + self.kv_latent + self.rope_rank + self.width

    def cache_bytes_per_token(self, bytes_per_number: int) -> int:
        """Key-value cache: b·(kv_latent + rope_rank)."""
        return bytes_per_number * (self.kv_latent + self.rope_rank)


def divisors(number: int) -> list[int]:
    """All divisors in ascending order.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [part for part in range(1, number + 1) if number % part == 0]


_EXAMPLES = {"width": 64, "heads": 8, "kv_heads": 1, "qk_rank": 8, "v_rank": 8}


def _listed(choices: list[int]) -> str:
    if len(choices) <= 12:
        return ", ".join(map(str, choices))
    return f"{', '.join(map(str, choices[:6]))}, … {choices[-1]}"
