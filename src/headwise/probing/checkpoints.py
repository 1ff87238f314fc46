"""scan: measure a model in memory, or load a checkpoint and make its inputs first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from headwise.checks import of_type, whole
from headwise.errors import ParameterError
from headwise.hugging_face.loading import load_model, with_new_weights
from headwise.hugging_face.places import find_source
from headwise.hugging_face.token_ids import Ids
from headwise.probing.inputs import Inputs
from headwise.probing.refusals import refuse_wrong_batch
from headwise.probing.result import Scan
from headwise.probing.scanning import LONGEST_DENSE, Batch, scan_module
from headwise.progress import SILENT, Progress
from headwise.scan_arguments import chosen_heads, chosen_layers

if TYPE_CHECKING:
    from headwise.runs import Store


def scan(
    model: nn.Module | str | Path,
    inputs: Batch | None = None,
    *,
    text: str | None = None,
    images: str | Path | None = None,
    ids: Ids | None = None,
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
    """Measure the attention rank of every head of a trained model.

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
        ids: Token ids, for a checkpoint: a file with one sequence per line or an array, or an
            array, a tensor or lists.
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
    choice |= _checked(longest_dense=longest_dense, store=store, against=against, progress=progress)
    of_type("`against_init`", against_init, bool, "True or False")
    of_type("`dtype`", dtype, (torch.dtype, type(None)), "a dtype such as torch.float32")
    kinds: dict[str, Any] = {"text": text, "images": images, "ids": ids, "random": random}
    if isinstance(model, nn.Module):
        _refuse_given("a model", kinds | {"against_init": against_init or None, "dtype": dtype})
        return scan_module(model, inputs, **choice)
    _refuse_given("`against_init`", {"against": against} if against_init else {})
    _refuse_given("`inputs`", {} if inputs is None else kinds)
    if inputs is not None:
        refuse_wrong_batch(inputs)
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


def _checked(**choice: Any) -> dict[str, Any]:
    """Return what models in memory and checkpoints are scanned with alike, or refuse it."""
    whole("`longest_dense`", choice["longest_dense"])
    of_type("`against`", choice["against"], (nn.Module, type(None)), "a torch module")
    of_type("`progress`", choice["progress"], Progress, "an object with the methods of Progress")
    if not hasattr(choice["store"], "records_of"):
        of_type("`store`", choice["store"], (str, PathLike, type(None)), "a Store, a path or a URL")
    return choice


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
