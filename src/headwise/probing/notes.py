"""What a reader of a scan should know beside its rows, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headwise.probing.rows import HeadRow


def notes_on(rows: Sequence[HeadRow], config: Any) -> Iterator[str]:
    """Yield the notes on the rows of a model with this config; a config of None is unknown."""
    stated, used = getattr(config, "head_dim", None), rows[0].head_dim
    latent = latent_size(config)
    if latent is None and isinstance(stated, int) and used is not None and stated != used:
        yield (
            f"The config says head_dim {stated}, but the queries have {used} dimensions; "
            f"the rows use {used}."
        )
    if latent is not None:
        yield (
            f"Keys and values come from one latent vector per token, so the KV cache can hold "
            f"{latent} numbers per token and layer. Smaller heads would not make it smaller, and "
            "no saving is stated."
        )
    if is_cut(config):
        yield (
            "headwise reduce cut this model: it caches keys and values at the ranks that its "
            "config states. Values are shown at the size to which it pads them, and no saving is "
            "stated."
        )
    excluded = sum(row.excluded for row in rows)
    if excluded:
        yield f"{excluded} query rows attend to no key and were left out."
    if any(row.mask == "in the maps" for row in rows):
        yield (
            "This family does not hand out queries and keys. The attention maps it returned were "
            f"measured, and ranks count from the floor of {rows[0].dtype}."
        )
    if any(row.method == "matrix-free" for row in rows):
        yield (
            "Sequences this long are measured without forming the matrix: ranks at 1e-8 and 0.01 "
            "are not known, effective ranks carry a standard error."
        )


def is_cut(config: Any) -> bool:
    """Whether headwise reduce wrote a model with this config."""
    return isinstance(getattr(config, "headwise", None), dict)


def latent_size(config: Any) -> int | None:
    """Return how many numbers latent attention (MLA) caches per token and layer; None for others.

    >>> from types import SimpleNamespace
    >>> latent_size(SimpleNamespace(kv_lora_rank=512, qk_rope_head_dim=64))
    576
    """
    parts = [getattr(config, name, None) for name in ("kv_lora_rank", "qk_rope_head_dim")]
    if not all(isinstance(part, int) for part in parts):
        return None
    return sum(part for part in parts if part is not None)
