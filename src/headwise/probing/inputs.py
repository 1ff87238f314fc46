"""What a checkpoint is scanned on: a text, images, token ids, or random draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from headwise.checks import of_type, whole
from headwise.errors import ParameterError
from headwise.hugging_face import inputs as make
from headwise.hugging_face.loading import load_tokenizer, preprocessor_settings
from headwise.hugging_face.places import Source
from headwise.hugging_face.token_ids import Ids, ids_batch


@dataclass(frozen=True)
class Inputs:
    """What to scan a checkpoint on. Give one of the first four, or text and images for two towers.

    Args:
        text: A text.
        images: A folder of images.
        ids: A file of token ids, one sequence per line, or an array, a tensor or lists.
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
    ids: Ids | None = None
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
        optional, path = type(None), (str, Path)
        of_type("`text`", self.text, (str, optional), "a text")
        of_type("`images`", self.images, (*path, optional), "the path of a folder")
        kinds = (*path, Tensor, np.ndarray, Sequence, optional)
        of_type("`ids`", self.ids, kinds, "a file, an array or lists of token ids")
        _refuse_name_of_file(self.text or "")
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
            found |= ids_batch(self.ids, words, **size)
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


def _refuse_name_of_file(text: str) -> None:
    """Refuse the name of a file in place of its content: its few letters would be measured."""
    try:
        named = "\n" not in text and Path(text).is_file()
    except OSError:  # too long for a name
        return
    if named:
        raise ParameterError(
            f"expected a text, got the name of a file {text!r}",
            hint=f"pass Path({text!r}).read_text()",
        )
