"""scan: measure a model in memory, or load a checkpoint and make its inputs first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from headwise.checks import of_type, whole
from headwise.errors import ParameterError
from headwise.hugging_face import inputs as make
from headwise.hugging_face.loading import (
    Source,
    load_model,
    load_tokenizer,
    preprocessor_settings,
    with_new_weights,
)
from headwise.hugging_face.places import find_source
from headwise.probing.result import Scan
from headwise.probing.scanning import LONGEST_DENSE, Batch, scan_module
from headwise.progress import SILENT, Progress
from headwise.scan_arguments import chosen_heads, chosen_layers

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
        if self.random is not None:
            whole("random", self.random, 0)

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


def scan(
    model: nn.Module | str | Path,
    inputs: Batch | None = None,
    *,
    text: str | None = None,
    images: str | Path | None = None,
    ids: str | Path | None = None,
    random: int | None = None,
    length: int = 512,
    batch: int = 1,
    layers: Collection[int | str] | str | None = None,
    heads: Collection[int] | str | None = None,
    against: nn.Module | None = None,
    against_init: bool = False,
    store: Store | str | Path | None = None,
    longest_dense: int = LONGEST_DENSE,
    dtype: torch.dtype | None = None,
    progress: Progress = SILENT,
) -> Scan:
    """Measure the rank of every attention head of a trained model.

    Pass a model and the ``inputs`` that it is called with, or a checkpoint and one of ``text``,
    ``images``, ``ids`` and ``random``. The model is called once in evaluation mode, and its mode
    is restored. Each matrix is computed in float64 from queries and keys, without padding.

    Args:
        model: Any model that ``capture`` reads; or a checkpoint: a folder with config.json and
            weights, a GGUF file or its folder, or a hub id.
        inputs: What the model is called with: a tensor, a tuple of arguments, or a mapping of
            named arguments such as the output of a tokenizer.
        text: A text, for a checkpoint; with ``images`` for a model with two towers.
        images: A folder of images, for a checkpoint.
        ids: A file of token ids, one sequence per line, or an array; for a checkpoint.
        random: A seed, for a checkpoint: draw token ids or pixels at random.
        length: The largest number of tokens that a checkpoint is scanned on.
        batch: The number of sequences or images that a checkpoint is scanned on.
        layers: Which layers, by name or by their place in the forward pass from 0, or a text such
            as "0,5-7"; all by default.
        heads: Which heads, from 0, or a text such as "0,2-3"; all by default.
        against: The same model with other weights, for example as it starts; its rows become
            ``initial``.
        against_init: Measure a checkpoint with new weights too; the rows become ``initial``.
        store: Where rows are kept as they are measured: a ``Store``, a path or a URL. A scan of
            the same model and input takes the rows that are there. Nothing is kept by default.
        longest_dense: Sequences of more tokens are measured without forming the matrix.
        dtype: In which dtype to load a checkpoint; its own by default.
        progress: Receives news: one step for each head.

    Returns:
        The rows, one for each layer and head.

    Raises:
        BadInputError: No attention layer can be read, there is no such model, layer or head, the
            input does not fit the model, an activation is not finite, or padding has no mask.
        MissingExtraError: A package that a checkpoint needs is not installed.
        ParameterError: An argument is of the wrong type, or arguments do not go together.
        TooLargeError: The checkpoint does not fit into memory; nothing was loaded.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> scan(mha(HeadGeometry.standard(8, heads=2)), torch.randn(1, 6, 8))
        Scan(1 layer, 2 heads, mean rank at 1e-2: ... of the tokens)
        >>> scan("models/mine")
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected text, images, ids or random, got none ...
    """
    of_type("`model`", model, (nn.Module, str, Path), "a torch module or the path of a checkpoint")
    choice: dict[str, Any] = {"layers": chosen_layers(layers), "heads": chosen_heads(heads)}
    choice |= {
        "longest_dense": longest_dense,
        "store": store,
        "against": against,
        "progress": progress,
    }
    kinds: dict[str, Any] = {"text": text, "images": images, "ids": ids, "random": random}
    if isinstance(model, nn.Module):
        _refuse_given("a model", kinds | {"against_init": against_init or None, "dtype": dtype})
        return scan_module(model, inputs, **choice)
    _refuse_given("`against_init`", {"against": against} if against_init else {})
    _refuse_given("`inputs`", {} if inputs is None else kinds)
    wanted = inputs if inputs is not None else Inputs(**kinds, length=length, batch=batch)
    source = find_source(model)
    notes: list[str] = []
    loaded = load_model(source, dtype=dtype, notes=notes)
    if against_init:
        choice["against"] = with_new_weights(loaded)
    if isinstance(wanted, Inputs):
        made = wanted.made_for(loaded, source)
        found = scan_module(loaded, made, **choice)
        notes += wanted.note(loaded, made)
    else:
        found = scan_module(loaded, wanted, **choice)
    return replace(found, notes=(*found.notes, *notes), model=_name(model))


def _refuse_given(beside: str, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that do not go with something else that was passed."""
    given = [f"`{name}`" for name, value in parameters.items() if value is not None]
    if given:
        raise ParameterError(
            f"expected no {' or '.join(given)} with {beside}, got both",
            hint="pass one; a checkpoint is passed by its path",
        )


def _name(model: str | Path) -> str:
    """Return the last part of a path; a report should not name folders of this machine."""
    return Path(model).name if Path(model).exists() else str(model)
