"""Load a folder that headwise reduce wrote with the code that lies beside the weights."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError
from headwise.hugging_face.config import read_fields
from headwise.hugging_face.places import Source

#: What headwise reduce copies into every folder. Only a copy that is equal to it is run.
CODE = Path(__file__).parents[1] / "reduction" / "modeling_headwise.py"

#: What the module is called while Python runs; apart from the one that headwise.load imports.
NAME = "headwise_saved_code"


def cut_class(source: Source) -> Any | None:
    """Return the class, without a task head, of a model that headwise reduce wrote.

    Args:
        source: Where a model lies.

    Returns:
        The class, or None for every other model: transformers knows those itself.

    Raises:
        BadInputError: The code in the folder is not that of this version, and is not run.
    """
    folder = source.folder if source.gguf is None else None
    cut = None if folder is None else _cut_in(folder / "config.json")
    if folder is None or cut is None:
        return None
    copy = folder / CODE.name
    kind = f"Headwise{str(cut.get('base')).partition('For')[0].removesuffix('Model')}Model"
    same = copy.is_file() and copy.read_bytes() == CODE.read_bytes()
    found = getattr(_run(copy), kind, None) if same else None
    if found is None:
        raise BadInputError(
            f"expected the {CODE.name} of this version of headwise in {source.place!r}, got "
            f"{'one without ' + kind if same else 'another' if copy.is_file() else 'none'}",
            hint="reduce the model again, or pass headwise.load(folder) with `inputs` in Python",
        )
    return found


def _cut_in(config: Path) -> dict[str, Any] | None:
    cut = read_fields(config).get("headwise") if config.is_file() else None
    return cut if isinstance(cut, dict) else None


def _run(file: Path) -> Any:
    """Run the code once: every copy of it that is run is the same."""
    if NAME not in sys.modules:
        spec = spec_from_file_location(NAME, file)
        assert spec is not None and spec.loader is not None  # the name ends in .py
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        # capture looks up the eager attention of a layer in the module of its class.
        sys.modules[NAME] = module
    return sys.modules[NAME]
