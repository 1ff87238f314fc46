"""Write a cut model to a folder, and load it again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from headwise.checks import of_type
from headwise.errors import BadInputError
from headwise.hugging_face.reducible import ENCODERS
from headwise.whole_files import new_folder

#: The file that plain transformers runs with ``trust_remote_code``.
MODELING = Path(__file__).with_name("modeling_headwise.py")


def save_model(model: Any, folder: str | Path, tokenizer: Any = None) -> Path:
    """Write a cut model: config, safetensors, its code and its tokenizer.

    The folder appears when everything is written, or not at all.

    Args:
        model: A cut model.
        folder: Where to write; must not exist.
        tokenizer: Saved with the model, if given.

    Returns:
        The folder that was written; ``load`` reads it.

    Raises:
        BadInputError: If the folder exists.

    Example:
        >>> save_model(None, ".")
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: the folder . exists already; choose another name
    """
    folder = new_folder(folder)
    beside = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    if getattr(model.config, "quantization_config", None) is not None:
        forget_quantisation(model)
    model.save_pretrained(beside)
    if tokenizer is not None:
        tokenizer.save_pretrained(beside)
    shutil.copyfile(MODELING, beside / MODELING.name)
    _name_the_code(beside / "config.json", model.config.headwise["base"])
    beside.replace(folder)
    return folder


def load(folder: str | Path, **named: Any) -> Any:
    """Load a model that ``headwise reduce`` wrote.

    No code from the folder runs: the classes are those of this package.

    Args:
        folder: The folder.
        **named: What ``from_pretrained`` takes, such as ``dtype``.

    Returns:
        The model in evaluation mode.

    Raises:
        BadInputError: The folder was not written by ``headwise reduce``, or by a newer version.
        ParameterError: ``folder`` is no path.

    Example:
        >>> load("/nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: expected a folder that headwise reduce wrote, got ...
    """
    of_type("`folder`", folder, (str, os.PathLike), "the path of a folder")
    config = Path(folder) / "config.json"
    cut = _fields(config).get("headwise") if config.is_file() else None
    if not isinstance(cut, dict) or cut.get("format") != 1 or "base" not in cut:
        raise BadInputError(
            f"expected a folder that headwise reduce wrote, got {str(folder)!r}",
            hint="load other models with transformers",
        )
    from headwise.hugging_face.loading import transformers

    transformers()
    from headwise.reduction import modeling_headwise

    kind = getattr(modeling_headwise, f"Headwise{cut['base']}")
    return kind.from_pretrained(folder, local_files_only=True, **named).eval()


def auto_class(base: str) -> str:
    """Return the Auto class that loads a cut model of this class.

    >>> auto_class("BertForMaskedLM")
    'AutoModelForMaskedLM'
    """
    return ENCODERS.get(base, "AutoModelForCausalLM")


def forget_quantisation(model: Any) -> None:
    """Make a model from a GGUF file an ordinary one: its weights are unpacked already."""
    del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model, "quantization_method"):
        del model.quantization_method


def _fields(config: Path) -> dict[str, Any]:
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _name_the_code(config: Path, base: str) -> None:
    fields = _fields(config)
    bare = f"{base.partition('For')[0].removesuffix('Model')}Model"
    classes = {"AutoModel": bare, auto_class(base): base}
    fields["auto_map"] = {auto: f"{MODELING.stem}.Headwise{name}" for auto, name in classes.items()}
    fields["architectures"] = [f"Headwise{base}"]
    config.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
