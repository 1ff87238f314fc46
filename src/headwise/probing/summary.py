"""What a scan shows: which layers use their rank, what is slack, what less would save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwise.probing.rows import HeadRow, mean_of
from headwise.report.results import short_repr
from headwise.report.tables import counted

if TYPE_CHECKING:
    from headwise.probing.result import Scan

#: Bytes of one number, by dtype.
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}

#: A model looks untrained if this share of its heads attends uniformly (query-key rank 0).
UNTRAINED = 0.5

#: A layer uses its rank if the mean of its coarse ranks is at least this share of the tokens.
MOST = 0.5


@dataclass(frozen=True)
class Summary:
    """The numbers behind the sentences; None where they are not known.

    Attributes:
        heads: Number of heads.
        layers: Number of layers.
        tokens: Mean number of tokens.
        tolerance: From where on ``full_heads`` counts: 1e-8, or the rounding of the dtype.
        full_heads: Heads whose rank at that tolerance is at least 99 % of the tokens.
        coarse_share: Mean rank at 0.01, as a share of the tokens.
        barrier_share: Mean hardmax rank, as a share of the tokens.
        law_share: The same for random queries and keys.
        using_layers: Layers whose mean rank at 0.01 is at least half of the tokens.
        least_layer: The layer with the lowest mean rank at 0.01, and that mean.
        query_key_need: Mean query-key rank as a share of the head dimension.
        value_need: Mean rank of the output as a share of the value dimension.
        uniform_heads: Heads whose logits vary by less than 0.1 in root mean square: their query-key
            rank is 0. A layer in which all heads are uniform adds no saving.
        saved_parameters: Parameters that a layer-wise smaller geometry would save, for all layers;
            None for a model that looks untrained.
        saved_kv_bytes: Bytes of KV cache per token that it would save, for all layers.
        kv_bytes: Bytes of KV cache per token now.
        rotary: Whether positions turn queries and keys, so that ranks cannot be cut exactly.
        cached: Whether a mask is causal, so that keys and values are cached.
        effective_rank: Mean effective rank.
        initial_coarse_share: ``coarse_share`` with new weights.
        initial_effective_rank: ``effective_rank`` with new weights.
    """

    heads: int
    layers: int
    tokens: float
    tolerance: str
    full_heads: int | None
    coarse_share: float | None
    barrier_share: float | None
    law_share: float | None
    using_layers: tuple[str, ...]
    least_layer: tuple[str, float] | None
    query_key_need: float | None
    value_need: float | None
    uniform_heads: int
    saved_parameters: int | None
    saved_kv_bytes: int | None
    kv_bytes: int | None
    rotary: bool
    cached: bool
    effective_rank: float | None
    initial_coarse_share: float | None
    initial_effective_rank: float | None

    __repr__ = short_repr


def summary(found: Scan) -> Summary:
    """Summarise a scan.

    Args:
        found: The scan.

    Returns:
        A ``Summary`` of the heads: the numbers that ``sentences`` puts into words.

    Example:
        >>> import torch
        >>> from headwise.attention import HeadGeometry, mha
        >>> from headwise.probing import scan
        >>> found = scan(mha(HeadGeometry.standard(8, heads=2)), torch.randn(1, 5, 8))
        >>> summary(found).heads
        2
    """
    rows = found.rows
    start = () if found.initial is None else found.initial.rows
    by_layer = {layer: _share(found.of_layer(layer), "coarse_rank") for layer in found.layers}
    known = {layer: share for layer, share in by_layer.items() if share is not None}
    ranks = [row for row in rows if row.rank_low is not None]
    full = [row for row in ranks if (row.rank_low or 0) >= 0.99 * row.tokens]
    savings = [_saved(found, layer) for layer in found.layers]
    sure = [each for each in savings if each is not None]
    uniform = sum(row.query_key_rank == 0 for row in rows)
    whole = bool(sure) and len(sure) == len(savings) and uniform < UNTRAINED * len(rows)
    least = min(known, key=lambda layer: known[layer]) if known else None
    return Summary(
        heads=len(rows),
        layers=len(found.layers),
        tolerance=_tolerance(rows),
        tokens=sum(row.tokens for row in rows) / len(rows),
        full_heads=len(full) if ranks else None,
        coarse_share=_share(rows, "coarse_rank"),
        barrier_share=_share(rows, "hardmax_rank"),
        law_share=_share(rows, "law"),
        using_layers=tuple(layer for layer, share in known.items() if share >= MOST),
        least_layer=None if least is None else (least, known[least]),
        query_key_need=_need(rows, "query_key_rank", "head_dim"),
        value_need=_need(rows, "output_rank", "value_dim"),
        uniform_heads=uniform,
        saved_parameters=_once(found.layers, sure) if whole and found.width else None,
        saved_kv_bytes=sum(each[1] for each in sure) if whole else None,
        kv_bytes=sum(each[2] for each in sure) if whole else None,
        rotary=any(row.head_dim is not None and row.form_rank is None for row in rows),
        cached=any("causal" in row.mask for row in rows),
        effective_rank=mean_of(rows, "effective_rank"),
        initial_coarse_share=_share(start, "coarse_rank"),
        initial_effective_rank=mean_of(start, "effective_rank"),
    )


def sentences(facts: Summary) -> Iterator[str]:
    """Yield the summary in words, one sentence or two at a time.

    Args:
        facts: The numbers.

    Yields:
        Text without line breaks.

    Example:
        >>> import torch
        >>> from headwise.attention import HeadGeometry, mha
        >>> from headwise.probing import scan, sentences, summary
        >>> found = scan(mha(HeadGeometry.standard(8, heads=2)), torch.randn(1, 5, 8))
        >>> len(list(sentences(summary(found)))) > 0
        True
    """
    if facts.full_heads is not None:
        little = ": at that tolerance rank hardly tells heads apart"
        yield (
            f"{facts.full_heads} of {facts.heads} heads have (almost) full rank at "
            f"{facts.tolerance}{little if 2 * facts.full_heads > facts.heads else ''}."
        )
    if facts.coarse_share is not None and facts.least_layer is not None:
        yield (f"At 0.01 the mean rank is {facts.coarse_share:.0%} of the tokens.{_use(facts)}")
    if facts.initial_coarse_share is not None and facts.initial_effective_rank is not None:
        yield (
            f"With new weights the mean rank at 0.01 is {facts.initial_coarse_share:.0%} of the "
            f"tokens. The mean effective rank is {facts.initial_effective_rank:.3g} with new "
            f"weights and {facts.effective_rank:.3g} here."
        )
    if facts.barrier_share is not None and facts.law_share is not None:
        yield (
            f"With hardmax in place of softmax, heads reach {facts.barrier_share:.0%} of the "
            f"tokens; random queries and keys of this size reach {facts.law_share:.0%}."
        )
    if facts.query_key_need is not None and facts.value_need is not None:
        yield (
            f"On this input heads need {facts.query_key_need:.0%} of their query-key dimensions "
            f"(logits to 0.1 in root mean square) and {facts.value_need:.0%} of their value "
            "dimensions (output to 1%)."
        )
    yield from _uniform(facts)
    yield from _savings(facts)


def described(found: Scan) -> str:
    """Say what was scanned: layers, heads, tokens, head dimension and dtype.

    Args:
        found: The scan.

    Returns:
        Words without a full stop.

    Example:
        >>> import torch
        >>> from headwise.attention import HeadGeometry, mha
        >>> from headwise.probing import scan
        >>> described(scan(mha(HeadGeometry.standard(8, heads=2)), torch.randn(3, 5, 8)))
        '1 layer, 2 heads, 5 tokens, head dimension 4, float32, means over 3 sequences'
    """
    rows = found.rows
    dimensions = sorted({row.head_dim for row in rows if row.head_dim is not None})
    said = [
        counted(len(found.layers), "layer"),
        counted(len(rows), "head"),
        f"{_span(sorted({row.tokens for row in rows}))} tokens",
    ]
    if dimensions:
        said.append(f"head dimension {_span(dimensions)}")
    said.append(rows[0].dtype)
    if rows[0].sequences > 1:
        said.append(f"means over {rows[0].sequences} sequences")
    return ", ".join(said)


def _span(values: Sequence[int | float]) -> str:
    low, high = f"{values[0]:.4g}", f"{values[-1]:.4g}"
    return low if low == high else f"{low} to {high}"


def _uniform(facts: Summary) -> Iterator[str]:
    """Say that heads attend uniformly, and what that means for a whole model."""
    count = facts.uniform_heads
    if not count:
        return
    said = f"The logits of {count} of {facts.heads} heads vary by less than 0.1: they attend almost"
    if count < UNTRAINED * facts.heads:
        yield f"{said} uniformly. No saving is derived from a layer of such heads alone."
    else:
        yield f"{said} uniformly. The model looks untrained, so no saving is stated."


def _use(facts: Summary) -> str:
    """Say how many layers use half of their rank, and which uses least; one layer needs no word."""
    if facts.layers < 2 or facts.least_layer is None:
        return ""
    name, share = facts.least_layer
    using = len(facts.using_layers)
    few = {0: "No layer uses half of its rank", 1: "1 layer uses at least half of its rank"}
    use = few.get(using, f"{using} layers use at least half of their rank")
    return f" {use}; {name} uses least, {share:.0%}."


def _tolerance(rows: Sequence[HeadRow]) -> str:
    maps = any(row.mask == "in the maps" for row in rows)
    return f"the rounding of {rows[0].dtype}" if maps else "1e-8"


def _savings(facts: Summary) -> Iterator[str]:
    if facts.saved_kv_bytes is None or facts.kv_bytes is None:
        return
    parameters = "" if facts.saved_parameters is None else f"{facts.saved_parameters:,} parameters"
    joined = f"{parameters} and " if parameters else ""
    kept = "KV cache" if facts.cached else "keys and values"
    yield (
        f"If every layer kept the largest need among its heads, it would save {joined}"
        f"{facts.saved_kv_bytes:,} of {facts.kv_bytes:,} bytes of {kept} per token."
    )
    if facts.rotary:
        yield (
            "Positions turn the queries and keys of this model, so query-key ranks can only be cut "
            "in pairs of dimensions: the saving is an upper limit."
        )


def _share(rows: Sequence[HeadRow], column: str) -> float | None:
    """Return the mean share of the tokens; one query alone always has rank 1."""
    shares = [(getattr(row, column), row.tokens) for row in rows if row.tokens > 1]
    known = [value / tokens for value, tokens in shares if value is not None]
    return sum(known) / len(known) if known else None


def _need(rows: tuple[HeadRow, ...], column: str, of: str) -> float | None:
    pairs = [(getattr(row, column), getattr(row, of)) for row in rows]
    known = [need / whole for need, whole in pairs if need is not None and whole is not None]
    return sum(known) / len(known) if known else None


def _saved(found: Scan, layer: str) -> tuple[int, int, int] | None:
    """Return parameters and KV bytes per token saved in one layer, and its bytes now."""
    rows, kv_heads = found.of_layer(layer), found.kv_heads.get(layer)
    first = rows[0]
    known = mean_of(rows, "query_key_rank") is not None and mean_of(rows, "output_rank") is not None
    if not known or kv_heads is None or first.head_dim is None or first.value_dim is None:
        return None
    each = kv_heads * _BYTES.get(first.dtype, 4)
    now = each * (first.head_dim + first.value_dim)
    if all(row.query_key_rank == 0 for row in rows):
        return 0, 0, now
    keys = first.head_dim - max(_up(row.query_key_rank) for row in rows)
    values = first.value_dim - max(_up(row.output_rank) for row in rows)
    slack = max(keys, 0) + max(values, 0)
    parameters = (found.width or 0) * (len(rows) + kv_heads) * slack
    return parameters, each * slack, now


def _once(layers: list[str], savings: list[tuple[int, int, int]]) -> int:
    """Sum the parameters saved; a layer called at several depths must serve the greatest need."""
    least: dict[str, int] = {}
    for layer, (parameters, _, _) in zip(layers, savings, strict=True):
        name = layer.partition("@")[0]
        least[name] = min(parameters, least.get(name, parameters))
    return sum(least.values())


def _up(value: float | None) -> int:
    return 0 if value is None else -int(-value // 1)
