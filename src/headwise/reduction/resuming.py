"""Remember a calibration beside the folder to write, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.reduction.calibration import LayerMoments, Moments

_NAMES = (
    *("states", "weighted", "gradients", "total", "total_weighted", "weights"),
    *("by_sequence", "slopes"),
)
_COUNTS = ("tokens", "sequences")

#: The version of the file; another version is not read.
_FORMAT = 2


class MomentsFile:
    """Moments of the batches that are done, in a file beside the folder to write.

    Args:
        folder: The folder to write.
        model: The model.
        batches: The calibration.
        seed: Of the calibration.
    """

    def __init__(
        self, folder: Path, model: Any, batches: Sequence[dict[str, Tensor]], seed: int
    ) -> None:
        key = _key(model, batches, seed)
        self.folder = folder
        self.place = folder.with_name(f".{folder.name}.moments-{key}.safetensors")

    def read(self) -> tuple[list[LayerMoments], int] | None:
        """Return what an earlier run with the same inputs kept."""
        from safetensors.torch import load_file

        if not self.place.is_file():
            return None
        flat = load_file(self.place)
        done = int(flat.pop("done"))
        layers = 1 + max(int(name.partition(".")[0]) for name in flat)

        def one(index: int, kind: str) -> Moments:
            own = [flat[f"{index}.{kind}.{name}"] for name in _NAMES]
            tokens, sequences = (int(flat[f"{index}.{kind}.{name}"]) for name in _COUNTS)
            return Moments(*own, tokens=tokens, sequences=sequences)

        return [LayerMoments(one(i, "keys"), one(i, "values")) for i in range(layers)], done

    def write(self, layers: list[LayerMoments], done: int) -> None:
        """Keep the moments of the first ``done`` batches; the file is whole at any moment."""
        from safetensors.torch import save_file

        flat = {"done": torch.tensor([done])}
        for index, layer in enumerate(layers):
            for kind, own in vars(layer).items():
                for name in _NAMES:
                    flat[f"{index}.{kind}.{name}"] = getattr(own, name).contiguous()
                for name in _COUNTS:
                    flat[f"{index}.{kind}.{name}"] = torch.tensor([getattr(own, name)])
        self.place.parent.mkdir(parents=True, exist_ok=True)
        beside = self.place.with_name(f"{self.place.name}.part")
        save_file(flat, beside)
        beside.replace(self.place)

    def forget(self) -> None:
        """Delete every calibration that is kept for this folder."""
        for place in self.folder.parent.glob(f".{self.folder.name}.moments-*.safetensors*"):
            place.unlink()


def _key(model: Any, batches: Sequence[dict[str, Tensor]], seed: int) -> str:
    """Return a hash of the inputs and of some weights of every layer."""
    digest = hashlib.sha256(str((_FORMAT, seed, model.config.to_json_string())).encode())
    for batch in batches:
        digest.update(batch["input_ids"].numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().flatten()[:64].cpu().float().numpy().tobytes())
    return digest.hexdigest()[:16]
