"""Remember a calibration beside the folder to write, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from headwise.reduction.calibration import LayerMoments, Moments


def remembered_moments(
    folder: Path | None,
    model: Any,
    batches: Sequence[dict[str, Tensor]],
    seed: int,
    measure: Callable[[], list[LayerMoments]],
) -> list[LayerMoments]:
    """Return the moments from an earlier run with the same inputs, or measure them.

    Args:
        folder: The folder to write; the moments are kept in a file beside it. None keeps none.
        model: The model.
        batches: The calibration.
        seed: Of the calibration.
        measure: Measures the moments.

    Returns:
        The moments of every layer.
    """
    if folder is None:
        return measure()
    from safetensors.torch import load_file, save_file

    place = folder.with_name(f".{folder.name}.moments-{_key(model, batches, seed)}.safetensors")
    if place.is_file():
        return _read(load_file(place))
    found = measure()
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f"{place.name}.part")
    save_file(_flat(found), beside)
    beside.replace(place)
    return found


def forget_moments(folder: Path) -> None:
    """Delete the moments kept beside a folder."""
    for place in folder.parent.glob(f".{folder.name}.moments-*.safetensors*"):
        place.unlink()


def _key(model: Any, batches: Sequence[dict[str, Tensor]], seed: int) -> str:
    """Return a hash of the inputs and of some weights of every layer."""
    digest = hashlib.sha256(str((seed, model.config.to_json_string())).encode())
    for batch in batches:
        digest.update(batch["input_ids"].numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().flatten()[:64].cpu().float().numpy().tobytes())
    return digest.hexdigest()[:16]


def _flat(layers: list[LayerMoments]) -> dict[str, Tensor]:
    import torch

    found = {}
    for index, layer in enumerate(layers):
        for kind, own in vars(layer).items():
            for name in ("states", "gradients", "total"):
                found[f"{index}.{kind}.{name}"] = getattr(own, name).cpu().contiguous()
            found[f"{index}.{kind}.tokens"] = torch.tensor([own.tokens])
    return found


def _read(flat: dict[str, Tensor]) -> list[LayerMoments]:
    def one(index: int, kind: str) -> Moments:
        own = [flat[f"{index}.{kind}.{name}"] for name in ("states", "gradients", "total")]
        return Moments(*own, tokens=int(flat[f"{index}.{kind}.tokens"]))

    layers = 1 + max(int(name.partition(".")[0]) for name in flat)
    return [LayerMoments(one(index, "keys"), one(index, "values")) for index in range(layers)]
