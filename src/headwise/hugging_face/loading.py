"""Load a model from a folder, a GGUF file or the hub, after a look at its size."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from torch import nn

from headwise.errors import BadInputError, HeadwiseError, TooLargeError, needs_extra
from headwise.hugging_face.config import read_fields
from headwise.hugging_face.cut_models import cut_class
from headwise.hugging_face.places import Source
from headwise.hugging_face.plausible import refuse_implausible
from headwise.hugging_face.quiet import quiet_transformers
from headwise.memory import available_bytes, readable_bytes

#: Files that a tokenizer may be saved in.
TOKENIZER_FILE = re.compile(r"tokenizer|vocab|merges|spiece|sentencepiece|.*\.model$")

#: How long to wait for the hub.
HUB_SECONDS = 5.0

#: What a forward pass needs beside the weights, as a share of them.
OVERHEAD = 1.25


def load_model(
    source: Source, *, dtype: torch.dtype | None = None, notes: list[str] | None = None
) -> nn.Module:
    """Load the model in evaluation mode, if it fits into memory.

    Args:
        source: Where it lies.
        dtype: In which dtype to load it; that of the checkpoint by default.
        notes: Receives a sentence if weights are missing and were drawn at random.

    Returns:
        The model without its task head.

    Raises:
        BadInputError: The checkpoint cannot be read, or the hub cannot be reached.
        MissingExtraError: transformers, or for a GGUF file gguf and accelerate, is missing.
        TooLargeError: It does not fit into memory; nothing was loaded.
    """
    library = transformers()
    if source.gguf is not None:
        _need_gguf()
    config = from_pretrained(source, library.AutoConfig)
    _refuse_too_large(source, config, dtype)
    if source.gguf is not None and dtype is None:
        dtype = torch.float32  # the weights are unpacked from a few bits
    chosen: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    kind = cut_class(source) or library.AutoModel
    model, told = from_pretrained(source, kind, output_loading_info=True, **chosen)
    missing = sorted(name for name in told["missing_keys"] if "pooler" not in name)
    if missing and notes is not None:
        notes.append(
            f"The checkpoint lacks {len(missing)} weights, such as {missing[0]!r}. They were drawn "
            "at random: rows that depend on them show no training."
        )
    return model.eval()


def load_tokenizer(source: Source, hint: str = "save the tokenizer there") -> Any:
    """Load the tokenizer of a model, or raise BadInputError with this hint if it has none."""
    folder = source.folder if source.gguf is None else None
    try:
        found = from_pretrained(source, transformers().AutoTokenizer, "a tokenizer")
    except BadInputError:
        if folder is None or any(TOKENIZER_FILE.match(each.name) for each in folder.iterdir()):
            raise
        raise BadInputError(
            f"{source.place!r} contains no tokenizer (no tokenizer.json)", hint=hint
        ) from None
    # transformers makes up an empty one if its files are missing. Some models need no files.
    names = sorted(set(getattr(found, "vocab_files_names", {}).values()))
    if names and folder is not None and not any((folder / name).exists() for name in names):
        raise BadInputError(
            f"{source.place!r} contains no tokenizer (no {' or '.join(names)})", hint=hint
        )
    return found


def with_new_weights(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return the same model as it starts: weights drawn by its own initialisation."""
    config: Any = type(model.config).from_dict(model.config.to_dict())  # type: ignore[union-attr]
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = type(model)(config)
    return made.to(next(model.parameters()).dtype).eval()


def transformers() -> Any:
    """Return the library, or say how to install it."""
    try:
        import transformers as library
    except ImportError:
        raise needs_extra("transformers", "hub") from None
    return library


def parameter_count(config: Any) -> int:
    """Return the number of parameters, from the shapes alone."""
    refuse_implausible(config.to_dict(), type(config).__name__)
    with torch.device("meta"):
        made = transformers().AutoModel.from_config(config)
    return sum(each.numel() for each in made.parameters())


@contextmanager
def _loading(source: Source, what: str) -> Iterator[None]:
    """Turn whatever a loader raises into one line: it meets damage of every kind."""
    try:
        yield
    except HeadwiseError:
        raise
    except Exception as error:
        if source.folder is None:
            raise BadInputError(
                f"expected a folder, or a hub id while online, got {source.place!r}; it could not "
                "be fetched",
                hint="download the model and pass its folder",
            ) from None
        raise BadInputError(
            f"expected {what} in {source.place!r}: {_reason(error)}",
            hint="save the model and its tokenizer into one folder",
        ) from None


def _reason(error: Exception) -> str:
    """Return in one line why a checkpoint could not be loaded."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("ignore_mismatched_sizes" in line for line in lines):
        return "its weights do not have the shapes that config.json states"
    told = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    # Backticks mark parameters in our own messages.
    told = re.sub(r"(?<=\S)\.+$", "", told.replace("`", "'"))  # a folder may be called "."
    plain = isinstance(error, OSError | ValueError) and told
    return told if plain else f"{type(error).__name__}: {told}".rstrip(": ")


def _need_gguf() -> None:
    try:
        import accelerate
        import gguf
    except ImportError as error:
        raise needs_extra(str(error.name), "gguf") from None
    del accelerate, gguf


def from_pretrained(source: Source, kind: Any, what: str = "a checkpoint", **more: Any) -> Any:
    """Load with a class of transformers, or refuse what it cannot load in one line."""
    given = source.arguments()
    if source.folder is None and not _hub_answers():
        given["local_files_only"] = True  # in the cache, or nowhere
    config = None if source.folder is None else source.folder / "config.json"
    if source.gguf is None and config is not None and config.is_file():
        refuse_implausible(read_fields(config), str(config))
    with _loading(source, what), quiet_transformers():
        return kind.from_pretrained(source.place, **given, **more)


def _hub_answers() -> bool:
    """Whether the hub can be reached: one quick try, where the library takes six slow ones."""
    from huggingface_hub.constants import ENDPOINT

    if getproxies():
        return True  # only the proxy knows
    address = urlsplit(ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname, port), timeout=HUB_SECONDS):
            return True
    except OSError:
        return False


def _refuse_too_large(source: Source, config: Any, dtype: torch.dtype | None) -> None:
    """Refuse a model that would not fit, before its weights are read."""
    free = available_bytes(torch.device("cpu"))
    if free is None:
        return
    stored = getattr(config, "dtype", None)
    stored = stored if isinstance(stored, torch.dtype) else torch.float32
    used = dtype or (torch.float32 if source.gguf is not None else stored)
    with _loading(source, "a checkpoint"):
        count = parameter_count(config)
    needed = int(OVERHEAD * count * used.itemsize)
    if needed <= free:
        return
    largest = int(free / OVERHEAD / used.itemsize)
    short = int(OVERHEAD * count * 2)
    smaller = f"in bfloat16 it needs {readable_bytes(short)}" if used.itemsize > 2 else ""
    raise TooLargeError(
        f"{count:,} parameters in {str(used).removeprefix('torch.')} need {readable_bytes(needed)} "
        f"of memory, {readable_bytes(free)} is free" + (f"; {smaller}" if smaller else ""),
        hint=f"choose a model of at most {largest:,} parameters, or a machine with more memory",
    )


def preprocessor_settings(source: Source) -> dict[str, Any]:
    """Return the fields of preprocessor_config.json; none if there is no such file."""
    folder = source.folder
    path = None if folder is None else folder / "preprocessor_config.json"
    if path is None or not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise BadInputError(
            f"expected JSON fields in {str(path)!r}, got something else",
            hint="save the image processor again, or remove the file",
        )
    return found
