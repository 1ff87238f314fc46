"""Scan a checkpoint: load it, make its inputs, measure every head."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from headwise.checks import whole
from headwise.errors import ParameterError
from headwise.hugging_face import inputs as make
from headwise.hugging_face.loading import (
    Source,
    find_source,
    load_model,
    load_tokenizer,
    preprocessor_settings,
    with_new_weights,
)
from headwise.probing.rows import Scan
from headwise.probing.scanning import LONGEST_DENSE, scan
from headwise.progress import SILENT, Progress

if TYPE_CHECKING:
    from headwise.runs import Store


@dataclass(frozen=True)
class Inputs:
    """What to scan a checkpoint on. Give one of the first four, or text and images for two towers.

    Args:
        text: A text.
        images: A folder of images.
        ids: A file of token ids, one sequence per line, or an array.
        random: A seed: draw token ids or pixels at random.
        length: The largest number of tokens.
        batch: The number of sequences or images.

    Raises:
        ParameterError: Nothing is given, or kinds that do not go together.

    Example:
        >>> Inputs(text="All happy families are alike.").length
        512
    """

    text: str | None = None
    images: str | Path | None = None
    ids: str | Path | None = None
    random: int | None = None
    length: int = 512
    batch: int = 1

    def __post_init__(self) -> None:
        given = {
            name for name in ("text", "images", "ids", "random") if getattr(self, name) is not None
        }
        if len(given) != 1 and given != {"text", "images"}:
            got = " and ".join(sorted(given)) or "none of them"
            raise ParameterError(
                f"expected text, images, ids or random, got {got}", hint="pass one of them"
            )
        whole("length", self.length, 2)
        whole("batch", self.batch)

    def made_for(self, model: nn.Module, source: Source) -> make.Batch:
        """Return the batch for a model."""
        for kind in ("text", "images"):
            if getattr(self, kind) is not None:
                make.refuse_unlike(model, kind)
        size = {"length": self._length(model), "batch": self.batch}
        found: make.Batch = {}
        if self.text is not None:
            tokenizer = load_tokenizer(source, "save the tokenizer there, or pass `ids`")
            found |= make.text_batch(tokenizer, self.text, **size)
        if self.images is not None:
            settings = preprocessor_settings(source)
            found |= make.image_batch(self.images, model, settings, batch=self.batch)
        if self.ids is not None:
            make.refuse_unlike(model, "text")
            words = getattr(getattr(model, "config", None), "vocab_size", None)
            found |= make.ids_batch(self.ids, words, **size)
        if self.random is not None:
            found |= make.random_batch(model, **size, seed=self.random)
        if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
            for name in ("input_ids", "attention_mask"):
                found[f"decoder_{name}"] = found[name]
        return found

    def note(self, model: nn.Module, batch: make.Batch) -> tuple[str, ...]:
        """Say so if the model takes fewer tokens than asked for, and the input reached them."""
        used, ids = self._length(model), batch.get("input_ids")
        if used == self.length or ids is None or ids.shape[1] < used:
            return ()
        return (f"The model takes at most {used} tokens; the input was cut to them.",)

    def _length(self, model: nn.Module) -> int:
        context = make.context_of(model)
        return self.length if context is None else min(self.length, context)


def scan_checkpoint(
    model: str | Path,
    inputs: Inputs,
    *,
    layers: Collection[int | str] | None = None,
    heads: Collection[int] | None = None,
    against_init: bool = False,
    store: Store | str | Path | None = None,
    longest_dense: int = LONGEST_DENSE,
    dtype: torch.dtype | None = None,
    progress: Progress = SILENT,
) -> Scan:
    """Load a checkpoint and measure the rank of each of its attention heads.

    Args:
        model: A folder with config.json and weights, a GGUF file or its folder, or a hub id.
        inputs: What to scan it on.
        layers: Which layers, by name or by their place from 0; all by default.
        heads: Which heads, from 0; all by default.
        against_init: Whether to measure the same model with new weights too.
        store: Where rows are kept, so that a stopped scan goes on; nowhere by default.
        longest_dense: Sequences of more tokens are measured without forming the matrix.
        dtype: In which dtype to load the model; that of the checkpoint by default.
        progress: Receives news: one step for each head.

    Returns:
        The rows, one for each layer and head.

    Raises:
        BadInputError: There is no such model, or the inputs do not fit it.
        MissingExtraError: A package that this needs is not installed.
        TooLargeError: The model does not fit into memory; nothing was loaded.

    Example:
        >>> scan_checkpoint("models/mine", Inputs())
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected text, images, ids or random, got none ...
    """
    source = find_source(model)
    notes: list[str] = []
    loaded = load_model(source, dtype=dtype, notes=notes)
    batch = inputs.made_for(loaded, source)
    found = scan(
        loaded,
        batch,
        layers=layers,
        heads=heads,
        against=with_new_weights(loaded) if against_init else None,
        store=store,
        longest_dense=longest_dense,
        progress=progress,
    )
    return replace(found, notes=(*found.notes, *notes, *inputs.note(loaded, batch)))
