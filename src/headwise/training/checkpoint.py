"""Save a run and resume it, bit for bit on the same device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headwise.errors import CheckpointError, UnreadableFileError
from headwise.training.curve import CurveRow
from headwise.training.state import State
from headwise.whole_files import read_checkpoint, write_checkpoint

VERSION = 2

START_AGAIN = "remove it to start again"


@dataclass(frozen=True)
class Saving:
    """Where and how often a run is saved.

    Args:
        path: The checkpoint file.
        key: The identity of the run; a checkpoint of another run is refused.
        seconds: The time between two saves.

    Example:
        >>> Saving(Path("run.pt"), key="a1b2").seconds
        60.0
    """

    path: Path
    key: str
    seconds: float | int = 60.0

    @classmethod
    def in_folder(cls, folder: Path, key: str) -> Saving:
        """Save in a folder that many runs share, under a name made from the key.

        Args:
            folder: The folder.
            key: The identity of the run.

        Returns:
            A ``Saving`` whose file in the folder is named by a hash of the key.

        Example:
            >>> Saving.in_folder(Path("runs"), key="a1b2").path.name
            '85337816d263d362.pt'
        """
        return cls(folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.pt", key)


def save(
    saving: Saving,
    identity: str,
    state: State,
    generators: Sequence[torch.Generator],
    rows: Sequence[CurveRow],
) -> None:
    """Write a new checkpoint, then replace the old one, so that a kill leaves one intact."""
    content = {
        "version": VERSION,
        "key": saving.key,
        "identity": identity,
        "state": state.copies(),
        "generators": [generator.get_state() for generator in generators],
        "rows": [asdict(row) for row in rows],
    }
    write_checkpoint(saving.path, content)


def resume(
    saving: Saving, identity: str, state: State, generators: Sequence[torch.Generator]
) -> tuple[CurveRow, ...]:
    """Restore the saved run, if there is one, and return its rows so far."""
    if not saving.path.exists():
        return ()
    content = _read(saving.path)
    try:
        _refuse_others(content, saving, identity)
        state.restore(content["state"])
        for generator, position in zip(generators, content["generators"], strict=True):
            generator.set_state(position)
        return tuple(CurveRow(**row) for row in content["rows"])
    except CheckpointError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
        raise UnreadableFileError(
            f"{saving.path} is no checkpoint of such a run", hint=START_AGAIN
        ) from None


def _read(path: Path) -> dict[str, Any]:
    content = read_checkpoint(path, hint=START_AGAIN)
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise UnreadableFileError(f"{path} is no checkpoint of this version", hint=START_AGAIN)
    return content


def _refuse_others(content: dict[str, Any], saving: Saving, identity: str) -> None:
    way_out = f"save elsewhere, or remove {saving.path} to start again"
    if content["key"] != saving.key:
        raise CheckpointError(
            f"the checkpoint {saving.path} belongs to {content['key']!r}, not {saving.key!r}",
            hint=way_out,
        )
    if content["identity"] != identity:
        raise CheckpointError(
            f"the checkpoint {saving.path} was made with other settings: "
            f"{_first_difference(content['identity'], identity)}",
            hint=way_out,
        )


def _first_difference(one: str, other: str) -> str:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    return next((f"{a} there, {b} here" for a, b in pairs if a != b), "more or fewer parameters")
