"""Fit the output maps of a cut model again, layer by layer, in closed form.

Both models read the calibration. At each layer the output map of the cut one is solved by least
squares so that its residual stream is as near as it can be to the original's: it makes up for what
the cut of this layer and of those before it changed. Tokens are weighted by one over the squared
norm of their residual, because the next norm divides by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from headwise.progress import SILENT, Progress, tracked
from headwise.reduction.cutting import new_parts
from headwise.reduction.families import attention_blocks, is_encoder

#: Added to the moments of the inputs, as a share of their mean variance: few tokens overfit.
RIDGE = 1e-3


class _EnoughError(Exception):
    """Stops a layer once the input of its output map is known."""


@torch.no_grad()
def refit_outputs(
    original: Any, made: Any, batches: Sequence[dict[str, Tensor]], *, progress: Progress = SILENT
) -> Any:
    """Fit the output maps of a cut model to the original's residual stream.

    Args:
        original: The model before the cut.
        made: The cut model; its output maps are changed in place.
        batches: Inputs of the calibration.
        progress: Where to report.

    Returns:
        ``made``.
    """
    streams = [_Stream(original, batch) for batch in batches]
    followers = [_Stream(made, batch) for batch in batches]
    config = original.config
    pairs = list(zip(attention_blocks(original), attention_blocks(made), strict=True))
    with tracked(progress, "fitting output maps", len(pairs)) as bar:
        for old, new in pairs:
            source, output = (new_parts(each, config)["output"] for each in (old, new))
            equations = _Equations(output)
            for first, second in zip(streams, followers, strict=True):
                before = first.states
                _, wanted = first.advance(old, source)
                mixed = second.until(new, output)
                equations.add(mixed, wanted + before - second.states, before)
            equations.solve()
            for each in followers:
                each.advance(new, output)
            bar.advance()
    return made


class _Stream:
    """The residual stream of one batch in one model."""

    def __init__(self, model: Any, batch: dict[str, Tensor]) -> None:
        inner, device = model.base_model, next(model.parameters()).device
        ids = batch["input_ids"].to(device)
        self.named: dict[str, Any] = {"attention_mask": None}
        if is_encoder(model.config):
            self.states = inner.embeddings(input_ids=ids)
        else:
            self.states = inner.embed_tokens(ids)
            places = torch.arange(ids.shape[1], device=device).unsqueeze(0)
            self.named["position_embeddings"] = inner.rotary_emb(self.states, places)

    def advance(self, block: nn.Module, output: nn.Linear) -> tuple[Tensor, Tensor]:
        """Pass one layer; return the input and the output of its output map."""
        seen: list[tuple[Tensor, Tensor]] = []

        def keep(_: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
            seen.append((given[0], made))

        hook = output.register_forward_hook(keep)
        try:
            states = block(self.states, **self.named)
        finally:
            hook.remove()
        self.states = states[0] if isinstance(states, tuple) else states
        return seen[0]

    def until(self, block: nn.Module, output: nn.Linear) -> Tensor:
        """Return the input of the output map of a layer, without passing it."""
        seen: list[Tensor] = []
        hook = output.register_forward_pre_hook(_stopping(seen))
        # The hook stops the block once it has the input.
        with suppress(_EnoughError):
            block(self.states, **self.named)
        hook.remove()
        return seen[0]


def _stopping(seen: list[Tensor]) -> Callable[..., None]:
    def stop(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0])
        raise _EnoughError

    return stop


class _Equations:
    """The normal equations of one output map."""

    def __init__(self, output: nn.Linear) -> None:
        self.output = output
        size = output.in_features + (output.bias is not None)
        wide = {"dtype": torch.float64, "device": output.weight.device}
        self.moment = torch.zeros(size, size, **wide)
        self.cross = torch.zeros(output.out_features, size, **wide)

    def add(self, mixed: Tensor, wanted: Tensor, residual: Tensor) -> None:
        """Add tokens: inputs, what the map should return, and what weights them."""
        weight = residual.flatten(0, 1).norm(dim=-1, keepdim=True).clamp_min(1e-6).reciprocal()
        left = (wanted - self.output(mixed)).flatten(0, 1) * weight
        rows = mixed.flatten(0, 1)
        if self.output.bias is not None:
            rows = torch.cat([rows, torch.ones_like(rows[:, :1])], dim=1)
        rows = rows * weight
        self.moment += (rows.mT @ rows).double()
        self.cross += (left.mT @ rows).double()

    def solve(self) -> None:
        """Add the least-squares correction to the map; the ridge keeps it small."""
        ridge = RIDGE * self.moment.diagonal().mean().clamp_min(1e-30)
        eye = torch.eye(len(self.moment), dtype=torch.float64, device=self.moment.device)
        change = torch.linalg.solve(self.moment + ridge * eye, self.cross.mT).mT
        size = self.output.in_features
        self.output.weight += change[:, :size].to(self.output.weight.dtype)
        if self.output.bias is not None:
            self.output.bias += change[:, size].to(self.output.bias.dtype)
