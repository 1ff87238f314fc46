"""Make a batch for a model: from a text, a folder of images, or at random."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headwise.data.images import PICTURES, image_files
from headwise.errors import BadInputError
from headwise.hugging_face.token_ids import padded
from headwise.memory import refuse_if_too_large

Batch = dict[str, Tensor]

#: What the first argument of a model is.
_KINDS = {"input_ids": "text", "pixel_values": "images"}


def takes(model: nn.Module) -> frozenset[str]:
    """Return what a model takes: "text", "images", or both."""
    config = getattr(model, "config", None)
    both = hasattr(config, "text_config") and hasattr(config, "vision_config")
    if both:
        return frozenset({"text", "images"})
    main = getattr(model, "main_input_name", "input_ids")
    if main not in _KINDS:
        raise BadInputError(
            f"expected a model that takes text or images, got {type(model).__name__}, which takes "
            f"{main}",
            hint="call headwise.scan(model, batch) in Python with a batch of your own",
        )
    return frozenset({_KINDS[main]})


def refuse_unlike(model: nn.Module, kind: str) -> None:
    """Refuse text for an image model, and the other way round."""
    known = takes(model)
    if kind not in known:
        raise BadInputError(
            f"expected {' and '.join(sorted(known))} for {type(model).__name__}, got {kind}",
            hint=f"pass {' and '.join(sorted(known))}, or random inputs",
        )


def context_of(model: nn.Module) -> int | None:
    """Return the largest number of tokens that the model takes, if its config says so."""
    config = getattr(model, "config", None)
    config = getattr(config, "text_config", config)
    for name in ("max_position_embeddings", "n_positions", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            # RoBERTa counts its positions from the padding token on.
            pad = getattr(config, "pad_token_id", None) or 0
            roberta = "roberta" in getattr(config, "model_type", "")
            return value - pad - 1 if roberta else value
    return None


def text_batch(tokenizer: Any, text: str, *, length: int, batch: int) -> Batch:
    """Cut a text into at most ``batch`` sequences of at most ``length`` tokens.

    Args:
        tokenizer: Of the model.
        text: The text.
        length: The largest number of tokens, special tokens included.
        batch: The largest number of sequences; all but the last are of full length.

    Returns:
        Token ids and, for several sequences, the attention mask.

    Raises:
        BadInputError: The text has fewer than two tokens, or the tokenizer knows few of them.
    """
    given: dict[str, Any] = {"truncation": True, "max_length": length}
    found = encoded(tokenizer, text, **given, return_overflowing_tokens=batch > 1)
    rows = found["input_ids"] if batch > 1 else [found["input_ids"]]
    rows = [row for row in rows if len(row) >= 2][:batch]
    if not text.strip() or not rows:
        raise BadInputError(
            "expected a text of at least two tokens, got fewer", hint="pass a longer text"
        )
    refuse_unknown(tokenizer, [each for row in rows for each in row])
    return padded(rows, getattr(tokenizer, "pad_token_id", None) or 0)


def encoded(tokenizer: Any, text: str, **given: Any) -> Any:
    """Return what the tokenizer makes of a text, or raise BadInputError if it cannot read it."""
    try:
        return tokenizer(text, **given)
    except BaseException as error:
        # The tokenizers library panics where a pattern backtracks too long, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise BadInputError(
            f"the tokenizer cannot read this text ({reason})",
            hint="save the model's own tokenizer beside it, or pass other text",
        ) from None


def refuse_unknown(tokenizer: Any, ids: Sequence[int]) -> None:
    """Refuse text of which the tokenizer knows less than half."""
    unknown: Any = getattr(tokenizer, "unk_token_id", None)
    special = {*getattr(tokenizer, "all_special_ids", ())} - {unknown}
    words = [each for each in ids if each not in special]
    count = words.count(unknown)
    if 0 < len(words) <= 2 * count:
        raise BadInputError(
            f"expected text that the tokenizer knows, got {count:,} unknown tokens of "
            f"{len(words):,}",
            hint="pass text in the model's language, and save its own tokenizer beside it",
        )


def random_batch(model: nn.Module, *, length: int, batch: int, seed: int = 0) -> Batch:
    """Draw token ids uniformly from the vocabulary, or pixels from N(0, 1), or both."""
    generator = torch.Generator().manual_seed(seed)
    config: Any = model.config
    found: Batch = {}
    if "text" in takes(model):
        refuse_if_too_large(
            f"{batch:,} sequences of {length:,} tokens",
            16 * batch * length,
            torch.device("cpu"),
            "pass a smaller `batch`",
        )
        words = getattr(config, "text_config", config).vocab_size
        found["input_ids"] = torch.randint(words, (batch, length), generator=generator)
        found["attention_mask"] = torch.ones(batch, length, dtype=torch.long)
    if "images" in takes(model):
        vision = getattr(config, "vision_config", config)
        shape = (batch, getattr(vision, "num_channels", 3), *_image_size(vision))
        refuse_if_too_large(
            f"{batch:,} images", 4 * math.prod(shape), torch.device("cpu"), "pass a smaller `batch`"
        )
        found["pixel_values"] = torch.randn(shape, generator=generator)
    return found


def image_batch(
    folder: str | Path, model: nn.Module, settings: Mapping[str, Any], *, batch: int
) -> Batch:
    """Read the first images of a folder, by name, at the size that the model takes.

    Images are resized to that size and normalised by the mean and deviation of the settings.

    Args:
        folder: Holds the images.
        model: An image model.
        settings: The fields of preprocessor_config.json.
        batch: How many images.

    Returns:
        What the model is called with: ``pixel_values`` (batch, channels, height, width).

    Raises:
        BadInputError: The folder has no images.
        MissingExtraError: pillow is not installed.
        UnreadableFileError: An image is damaged.
    """
    files = [each for each in sorted(Path(folder).glob("*")) if each.suffix.lower() in PICTURES]
    if not files:
        raise BadInputError(
            f"expected a folder with images, got {str(folder)!r}", hint="pass PNG or JPEG files"
        )
    config: Any = model.config
    vision = getattr(config, "vision_config", config)
    images = image_files(files[:batch], *_image_size(vision)).float()
    if getattr(vision, "num_channels", 3) == 1:
        images = images.mean(1, keepdim=True)
    mean, deviation = (_per_channel(settings, name) for name in ("image_mean", "image_std"))
    if not bool((deviation > 0).all()):
        raise BadInputError(
            f"expected image_std above 0 in preprocessor_config.json, got {deviation.tolist()}",
            hint="save the image processor again",
        )
    channels = images.shape[1]
    return {
        "pixel_values": (images - _shaped(mean, channels)) / _shaped(deviation, channels),
    }


def _per_channel(settings: Mapping[str, Any], name: str) -> Tensor:
    """Return one number per channel, or one for all, from preprocessor_config.json."""
    given = settings.get(name)
    try:
        found = torch.tensor([0.5] if given is None else given, dtype=torch.float32).flatten()
    except (TypeError, ValueError, RuntimeError):
        found = torch.zeros(0)
    if len(found) not in (1, 3):
        raise BadInputError(
            f"expected three numbers as {name} in preprocessor_config.json, got {given!r}",
            hint="save the image processor again",
        )
    return found


def _shaped(numbers: Tensor, channels: int) -> Tensor:
    """Return numbers per channel as (channels or 1, 1, 1)."""
    numbers = numbers if len(numbers) == channels else numbers.mean(0, keepdim=True)
    return numbers.reshape(-1, 1, 1)


def _image_size(config: Any) -> tuple[int, int]:
    size = getattr(config, "image_size", 224)
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
