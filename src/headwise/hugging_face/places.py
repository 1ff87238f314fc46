"""Find a model on this machine or on the hub, before torch is imported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError

#: A model on the hub: a name, or an owner and a name.
HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True)
class Source:
    """Where a model lies: a folder or a hub id, and the GGUF file in it, if it is one.

    Args:
        place: A folder or a hub id.
        gguf: The name of the GGUF file in the folder.

    Example:
        >>> Source("owner/name").folder is None
        True
    """

    place: str
    gguf: str | None = None

    @property
    def folder(self) -> Path | None:
        """The folder, if the model is on this machine."""
        path = Path(self.place)
        return path if path.is_dir() else None

    def arguments(self) -> dict[str, Any]:
        """Return what ``from_pretrained`` is called with, after the place."""
        given = {} if self.gguf is None else {"gguf_file": self.gguf}
        return given | {"local_files_only": self.folder is not None}


def find_source(model: str | Path) -> Source:
    """Find a model: a folder, a .safetensors file beside a config, a GGUF file, or a hub id.

    Args:
        model: A path or an id such as "owner/name".

    Returns:
        A folder or a hub id, and the GGUF file in it if it is one.

    Raises:
        BadInputError: There is no such model, or a folder has neither a config nor a GGUF file.

    Example:
        >>> find_source("owner/name").place
        'owner/name'
    """
    path = Path(model)
    if path.is_file():
        if path.suffix == ".gguf":
            return Source(str(path.parent), path.name)
        if path.suffix != ".safetensors" and path.name != "config.json":
            raise BadInputError(
                f"expected a folder, a GGUF file or a hub id, got the file {str(model)!r}",
                hint="pass the folder that save_pretrained wrote",
            )
        path = path.parent
    if not path.exists():
        if HUB_ID.fullmatch(str(model)):
            return Source(str(model))
        raise BadInputError(
            f"expected a folder, a GGUF file or a hub id, got {str(model)!r}", hint="check the path"
        )
    files = sorted(path.glob("*.gguf"))
    if (path / "config.json").is_file():
        return Source(str(path))
    if len(files) == 1:
        return Source(str(path), files[0].name)
    raise BadInputError(
        f"expected a folder with a config.json or one GGUF file, got {str(path)!r}"
        + (f" with {len(files)} GGUF files" if files else ""),
        hint="name the file" if files else "pass the folder that save_pretrained wrote",
    )
