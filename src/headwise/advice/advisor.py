"""Advise: from tokens, from numbers, or from a model's config to ranked geometries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwise.advice.config import read_config
from headwise.advice.deciding import decide, decide_for
from headwise.advice.gathering import evidence_of, numbers_evidence
from headwise.advice.question import FREE, NO_LIMIT, Budget, Constraints, Need
from headwise.advice.result import Advice
from headwise.masks import MaskName


def advise(
    tokens: Any,
    *,
    width: int | None = None,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName = "none",
    seed: int = 0,
) -> Advice:
    """Heads and ranks for these tokens: vectors (batch, sequence, width), or whole numbers, ids.

    ``width`` is that of the model; vectors of another width get a linear embedding into it.
    ``mask`` is "causal" for a model whose tokens attend to themselves and those before alone.

    >>> import torch
    >>> tokens = torch.randn(8, 24, 16, generator=torch.Generator().manual_seed(0))
    >>> advice = advise(tokens, width=32, budget=Budget(parameters=4096))
    >>> advice.best.geometry.parameters <= 4096
    True
    """
    from headwise.advice.measuring import Sampling

    evidence = evidence_of(tokens, width, Sampling(seed, mask=mask))
    return decide(evidence, budget, constraints, need)


def advise_numbers(
    length: int,
    width: int,
    *,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName = "none",
) -> Advice:
    """The same from two numbers alone, by the finite law of orthonormal tokens.

    With ``mask="causal"`` it is the law of tokens that attend to themselves and those before.

    >>> advise_numbers(512, 768).best.geometry
    HeadGeometry(width=768, heads=8, kv_heads=8, qk_rank=96, v_rank=96)
    """
    return decide(numbers_evidence(length, width, mask), budget, constraints, need)


def advise_config(
    path: Path | str,
    *,
    length: int | None = None,
    budget: Budget = NO_LIMIT,
    constraints: Constraints = FREE,
    need: Need = "data",
    mask: MaskName | None = None,
) -> Advice:
    """Judge the geometry of a model by its config.json, and offer others that cost no more.

    The mask is the config's own unless given.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "config.json"
    >>> _ = place.write_text('{"n_embd": 768, "n_head": 12, "n_positions": 512}')
    >>> advise_config(place).references[0].geometry.heads
    12
    """
    config = read_config(path)
    width = config.geometry.width
    assumed = not length and not config.context_told
    asked = (length or config.context, width, mask or config.mask)
    evidence = numbers_evidence(*asked, assumed=assumed)
    return decide_for(config, evidence, budget, constraints, need)
