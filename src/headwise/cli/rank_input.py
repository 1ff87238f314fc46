"""From the options of ``headwise rank`` to what is measured, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headwise.arrays import read_array
from headwise.attention import Mask, as_mask, scores
from headwise.cli.console import UsageError
from headwise.errors import BadInputError
from headwise.spectra import Absolute, DtypeFloor, LogWeights, Relative, Tolerance
from headwise.spectra.sources import as_matrices


@dataclass(frozen=True, eq=False)
class Subject:
    """What is measured, how to speak of it, and the dtype its numbers were stored in."""

    described: str
    source: Tensor | LogWeights
    dtype: torch.dtype
    temperature: float | None = None
    mask: str | None = None

    @property
    def values(self) -> Tensor:
        """The matrices, or the logits they come from."""
        return self.source.values if isinstance(self.source, LogWeights) else self.source


@dataclass(frozen=True)
class Asked:
    """The options that say what to measure, as they were given."""

    file: Path | None
    name: str | None
    logits: bool
    queries: Path | None
    keys: Path | None
    queries_name: str | None
    keys_name: str | None
    temperature: float | None
    mask: str

    def given(self) -> dict[str, str | float | bool]:
        """As JSON writes them; those without a value are left out."""
        options = {name: value for name, value in vars(self).items() if value is not None}
        return {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}

    def subject(self) -> Subject:
        """What they mean together, read from the files."""
        if self.file is not None:
            self._refuse_beside_file()
            return _of_file(self.file, self.name, self.logits)
        if self.queries is None or self.keys is None:
            raise UsageError("pass FILE, or both --queries and --keys")
        if self.logits:
            raise UsageError("--logits goes with FILE, not with --queries and --keys")
        if self.name is not None:
            raise UsageError(
                "--name goes with FILE; pass --queries-name and --keys-name for queries and keys"
            )
        return _of_queries_and_keys(self, self.queries, self.keys)

    def _refuse_beside_file(self) -> None:
        given = {
            "--queries": self.queries,
            "--keys": self.keys,
            "--queries-name": self.queries_name,
            "--keys-name": self.keys_name,
            "--temperature": self.temperature,
            "--mask": None if self.mask == "none" else self.mask,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(
                    f"{option} does not go with FILE; pass FILE alone, or --queries and --keys"
                )


def parsed_tolerance(text: str) -> Tolerance:
    """``1e-8``, ``relative:1e-6`` or ``dtype`` as a rule.

    >>> parsed_tolerance("relative:1e-6")
    Relative(fraction=1e-06)
    """
    if text == "dtype":
        return DtypeFloor()
    kind, _, number = text.rpartition(":")
    rules = {"": Absolute, "absolute": Absolute, "relative": Relative}
    try:
        rule, value = rules[kind], float(number)
    except (KeyError, ValueError):
        raise UsageError(
            f"--tolerance {text!r} is not a rule; pass 1e-8, relative:1e-6 or dtype"
        ) from None
    return rule(value)


def parsed_mask(text: str) -> Mask:
    """Return the mask of this name ("causal", "window:128", "causal+window:128") or file.

    >>> parsed_mask("causal")
    Causal(offset=0)
    """
    if Path(text).exists():
        return as_mask(read_array(text))
    try:
        return as_mask(text)
    except BadInputError:
        raise UsageError(
            f"--mask {text!r} is neither a rule nor a file; "
            "pass none, causal, window:128, causal+window:128 or a file"
        ) from None


def _of_file(file: Path, name: str | None, logits: bool) -> Subject:
    values = as_matrices(read_array(file, name), str(file))
    if logits:
        return Subject(f"softmax of {file}", LogWeights(values), values.dtype)
    if bool((values == -torch.inf).any()):
        raise BadInputError(
            f"{file} holds minus infinity, as masked logits do",
            hint="if these are logits, pass --logits",
        )
    return Subject(str(file), values, values.dtype)


def _of_queries_and_keys(asked: Asked, queries: Path, keys: Path) -> Subject:
    mask = parsed_mask(asked.mask)
    q = as_matrices(read_array(queries, asked.queries_name), str(queries))
    k = as_matrices(read_array(keys, asked.keys_name), str(keys))
    _refuse_unaligned(asked.mask, q.shape[-2], k.shape[-2])
    source = scores.logits(q, k, temperature=asked.temperature, mask=mask)
    temperature = scores.checked_temperature(asked.temperature, q.shape[-1])
    # What is known of the product is what is known of the coarser factor.
    coarser = max(q.dtype, k.dtype, key=lambda dtype: torch.finfo(dtype).eps)
    described = f"softmax of {queries} · {keys}ᵀ / {temperature:.6g}, mask {asked.mask}"
    return Subject(described, source, coarser, temperature, asked.mask)


def _refuse_unaligned(mask: str, queries: int, keys: int) -> None:
    """Refuse a mask by position where it is not said which key stands at which query."""
    by_position = any(part.partition(":")[0] in ("causal", "window") for part in mask.split("+"))
    if by_position and queries != keys:
        raise BadInputError(
            f"--mask {mask} is ambiguous for {queries} queries and {keys} keys",
            hint="pass the mask as a file of booleans, (queries, keys)",
        )
