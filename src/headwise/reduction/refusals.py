"""What is refused before a calibration, which takes minutes: wrong types and unmet budgets."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from headwise.checks import of_type
from headwise.errors import BadInputError, ParameterError
from headwise.progress import Progress
from headwise.reduction.budgets import Budget, affordable, least_share, refuse_rank, refuse_step
from headwise.reduction.families import Keys, attention_parts, is_encoder
from headwise.reduction.settings import CURVE, Settings
from headwise.reduction.sizes import LayerSizes
from headwise.reduction.texts import refuse_no_text


def refuse_other_types(model: Any, text: Any, **others: Any) -> None:
    """Refuse arguments that are of the wrong type, and a file where its text is meant."""
    place, none = (str, os.PathLike), type(None)
    of_type("`model`", model, (*place, torch.nn.Module), "a path, a hub id or a model")
    refuse_no_text(text)
    of_type("`tokenizer`", others["tokenizer"], (Callable, none), "a tokenizer")
    of_type("`out`", others["out"], (*place, none), "the path of a folder")
    of_type("`store`", others["store"], (*place, none), "a path or a URL")
    of_type("`progress`", others["progress"], Progress, "a headwise.Progress")


def kind_of_keys(config: Any, keys: Keys | None, budget: Budget) -> Keys:
    """Return how the keys of a model are cut, or refuse a way that does not fit it."""
    if is_encoder(config):
        if keys not in (None, "factors"):
            raise ParameterError(
                f"expected no `keys` for {config.model_type}, got {keys!r}",
                hint="leave `keys` out: an encoder's keys are cut in one way",
            )
        return "factors"
    # Rotated keys are made in full before they are compressed: no parameter is saved.
    shared: tuple[Keys, ...] = ("latent",) if budget.params is not None else ("latent", "rotated")
    if keys is None:
        return shared[0]
    if keys not in (*shared, "pairs"):
        purpose = " and a budget of parameters" if budget.params is not None else ""
        raise ParameterError(
            f"expected `keys` {', '.join(shared)} or pairs for {config.model_type}{purpose}, got "
            f"{keys}",
            hint="leave `keys` out for the best choice",
        )
    return keys


def settled(model: Any, kind: Keys, budget: Budget, asked: Settings) -> Settings:
    """Return the settings with a curve that ranks can meet; refuse a budget that none meets.

    Args:
        model: The original.
        kind: How keys are cut.
        budget: What the cut model may cost.
        asked: The settings; of the usual curve, shares that no ranks meet are left out.

    Returns:
        The settings.

    Raises:
        BadInputError: No choice of ranks meets the budget, or a share of the caller's own curve.
    """
    sizes = [LayerSizes(parts, kind) for parts in attention_parts(model)]
    itemsize = next(model.parameters()).element_size()
    if budget.keep is not None and budget.keep < 1:
        refuse_step(sizes, asked.step, asked.only)
    if budget.rank is not None:
        refuse_rank(sizes, budget.rank, asked.step, asked.only)
    if budget.asked is not None:
        affordable(sizes, budget, itemsize, asked.step, asked.only)
    if not asked.curve:
        return asked
    least = least_share(sizes, itemsize, asked.step, asked.only)
    met = tuple(share for share in asked.curve if share >= least)
    if asked.curve is not CURVE and len(met) < len(asked.curve):
        raise BadInputError(
            f"expected shares in `curve` of at least {least:.4g}, got {min(asked.curve):.4g}",
            hint="pass larger ones, or a smaller `step`",
        )
    return replace(asked, curve=met)
