"""Measure the rank of a file, an array, logits, or queries and keys, as ``headwise rank`` does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.arrays import plain, read_array
from headwise.attention import scores
from headwise.attention.mask_arguments import MaskLike, given_mask
from headwise.attention.masks import Everything, Mask
from headwise.attention.rank_results import MatrixRank, Ranks
from headwise.checks import of_type, one_of
from headwise.errors import BadInputError, ParameterError
from headwise.mask_names import names_mask_file
from headwise.progress import SILENT, Progress, tracked
from headwise.rank_arguments import refuse_mixtures
from headwise.spectra import (
    Certificate,
    DtypeFloor,
    LogWeights,
    Measurement,
    Relative,
    Tolerance,
    measure,
)
from headwise.spectra.certificate import reason_for_interval
from headwise.spectra.ranks import as_tolerance
from headwise.spectra.sources import as_matrices, made_on_cpu

Values = str | PathLike[str] | Tensor | np.ndarray

#: Entries measured at a time: few enough to bound memory and to move a progress bar.
STRIDE = 2**23

#: Matrices measured at a time, however small they are.
MATRICES = 64


@dataclass(frozen=True, eq=False)
class _Subject:
    """What to measure, and how to describe it."""

    description: str
    source: Tensor | LogWeights
    dtype: torch.dtype
    temperature: float | None = None
    mask: str | None = None


def rank(
    source: Values | LogWeights | None = None,
    *,
    name: str | None = None,
    logits: bool = False,
    queries: Values | None = None,
    queries_name: str | None = None,
    keys: Values | None = None,
    keys_name: str | None = None,
    temperature: float | None = None,
    mask: MaskLike | np.ndarray | PathLike[str] = "none",
    tolerance: Tolerance | float | str = 1e-8,
    progress: Progress = SILENT,
) -> Ranks:
    """Measure the rank of a matrix, or of the attention of queries and keys, with a certificate.

    The rank is the number of singular values of at least the tolerance. If rounding could have
    changed that number, the certificate is an interval with the reason.

    Args:
        source: A matrix or a batch, (..., rows, columns): a tensor, an array, or a file ending in
            .npy, .npz, .pt, .pth or .safetensors.
        name: Which array, if the file holds several.
        logits: Whether ``source`` holds logits; then the softmax of their rows is measured.
        queries: Queries, (..., tokens, head dimension), instead of ``source``.
        queries_name: Which array, if that file holds several.
        keys: The keys for these queries.
        keys_name: Which array, if that file holds several.
        temperature: What q·k is divided by; by default √ of the head dimension.
        mask: "none", "causal", "window:128", "causal+window:128"; or a tensor, an array or a file:
            booleans (True where a query may attend) or floats that are added to the logits, not
            all of them 0 or 1. It goes with queries and keys, and with logits.
        tolerance: Count singular values of at least this. "relative:1e-6" (``Relative(1e-6)``) is
            a share of the largest; "dtype" (``DtypeFloor()``) the share that the dtype rounds away.
        progress: Receives news of long work.

    Returns:
        The ranks of each matrix, and the singular values.

    Raises:
        ParameterError: If parameters do not go together, or one is unknown or out of range.
        BadInputError: If an array has the wrong shape, dtype or values.
        UnreadableFileError: If a file cannot be read.

    Example:
        >>> int(rank(torch.eye(4, dtype=torch.float64)))
        4
        >>> q = torch.ones(5, 2, dtype=torch.float64)
        >>> rank(queries=q, keys=q, mask="causal")
        Ranks(5 × 5 matrix, rank 5, certain)
    """
    asked = _checked(dict(locals()))
    rule = as_tolerance(tolerance)
    with made_on_cpu():
        if source is not None:
            subject = _of_matrix(source, name, logits=logits, mask=mask)
        else:
            q, k = _read(queries, queries_name, "queries"), _read(keys, keys_name, "keys")
            subject = _of_queries_and_keys(q, k, temperature, mask)
        return replace(_measured(subject, rule, progress), inputs=_repeated(asked))


def _checked(asked: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``rank``, if each is of its type and they go together."""
    one_of("`logits`", asked["logits"], (True, False))
    for name in ("name", "queries_name", "keys_name"):
        of_type(f"`{name}`", asked[name], (str, type(None)), "the name of an array")
    methods = "an object with the methods of headwise.Progress"
    of_type("`progress`", asked["progress"], Progress, methods)
    logits = asked["logits"] or isinstance(asked["source"], LogWeights)
    refuse_mixtures(asked | {"logits": logits})
    return asked


def _repeated(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, without arrays: files and rules by their names."""
    given = {name: value for name, value in asked.items() if name not in ("source", "progress")}
    given = {"file": asked["source"]} | given
    given |= {"mask": _label(asked["mask"]), "tolerance": _spelled(asked["tolerance"])}
    plain_ones = {
        name: str(value) if isinstance(value, PathLike) else value for name, value in given.items()
    }
    return {n: value for n, value in plain_ones.items() if isinstance(value, str | int | float)}


def _spelled(tolerance: Tolerance | float | str) -> str:
    """A tolerance as the command takes it: 1e-8, relative:1e-6 or dtype."""
    if isinstance(tolerance, str):
        return tolerance
    rule = as_tolerance(tolerance)
    if isinstance(rule, DtypeFloor):
        return "dtype"
    number = rule.fraction if isinstance(rule, Relative) else rule.epsilon
    short = re.sub(r"e([+-])0+", r"e\1", repr(float(number)))
    return f"relative:{short}" if isinstance(rule, Relative) else short


class _Read(NamedTuple):
    """How to name values in messages, the values as floats, and the dtype they are stored in."""

    name: str
    values: Tensor
    stored: torch.dtype


def _read(values: Values | None, name: str | None, what: str) -> _Read:
    assert values is not None  # refuse_mixtures saw to it
    parameter = "name" if what == "the matrix" else f"{what}_name"
    if isinstance(values, str | PathLike):
        stored = read_array(Path(values), name, parameter)
        return _Read(str(values), as_matrices(stored, str(values)), stored.dtype)
    if name is not None:
        raise ParameterError(f"{what} is not a file, so it has no name {name!r}", hint="drop it")
    stored = plain(values, what)
    return _Read(what, as_matrices(stored, what), stored.dtype)


def _of_matrix(
    source: Values | LogWeights,
    name: str | None,
    *,
    logits: bool,
    mask: MaskLike | np.ndarray | PathLike[str],
) -> _Subject:
    if isinstance(source, LogWeights):
        described, weights, stored = "the logits", source, source.dtype
    else:
        described, values, stored = _read(source, name, "the matrix")
        _refuse_not_finite(described, values, "logits" if logits else "entries")
        if not logits:
            return _of_weights(described, values, stored)
        weights = LogWeights(values)
    label, rule = _label(mask), _mask(mask)
    if isinstance(rule, Everything):
        return _Subject(f"softmax of {described}", weights, stored)
    _refuse_unaligned(label, *weights.shape[-2:])
    masked = scores.masked(weights, rule)
    return _Subject(f"softmax of {described}, mask {label}", masked, stored, mask=label)


def _refuse_not_finite(described: str, values: Tensor, kind: str) -> None:
    """Raise if a row holds NaN or infinity; minus infinity masks a logit."""
    largest = values.amax(-1)
    bad = int((largest.isnan() | (largest == torch.inf)).sum())
    if bad:
        raise BadInputError(
            f"{described}: expected finite {kind}, got NaN or infinity in {bad} of "
            f"{largest.numel()} rows",
            hint="fix them before measuring the rank",
        )


def _of_weights(described: str, values: Tensor, stored: torch.dtype) -> _Subject:
    if bool((values == -torch.inf).any()):
        raise BadInputError(
            f"{described} holds minus infinity, as masked logits do",
            hint="if these are logits, pass `logits=True`",
        )
    return _Subject(described, values, stored)


def _of_queries_and_keys(
    queries: _Read,
    keys: _Read,
    temperature: float | None,
    mask: MaskLike | np.ndarray | PathLike[str],
) -> _Subject:
    (q_name, q, _), (k_name, k, _) = queries, keys
    label, rule = _label(mask), _mask(mask)
    _refuse_unaligned(label, q.shape[-2], k.shape[-2])
    source = scores.logits(q, k, temperature=temperature, mask=rule)
    used = scores.checked_temperature(temperature, q.shape[-1])
    # The product is as coarse as the coarser of its factors.
    coarser = max(queries, keys, key=lambda read: torch.finfo(read.values.dtype).eps).stored
    described = f"softmax of {q_name} · {k_name}ᵀ / {used:.6g}, mask {label}"
    return _Subject(described, source, coarser, used, label)


def _label(mask: MaskLike | np.ndarray | PathLike[str]) -> str:
    if isinstance(mask, str | PathLike):
        return str(mask)
    return mask.name if isinstance(mask, Mask) else "given"


def _mask(mask: MaskLike | np.ndarray | PathLike[str]) -> Mask:
    if isinstance(mask, np.ndarray | Tensor):
        return given_mask(plain(mask, "the mask"))
    if not isinstance(mask, str | PathLike):
        return given_mask(mask)
    if names_mask_file(mask):
        return given_mask(read_array(Path(mask)))
    try:
        return given_mask(str(mask))
    except BadInputError:
        raise ParameterError(
            f"expected `mask` to be a rule or a file, got {str(mask)!r}",
            hint="pass none, causal, window:128, causal+window:128 or a file",
        ) from None


def _refuse_unaligned(mask: str, queries: int, keys: int) -> None:
    """Raise if a mask by position is used for queries and keys of different positions."""
    by_position = any(part.partition(":")[0] in ("causal", "window") for part in mask.split("+"))
    if by_position and queries != keys:
        raise BadInputError(
            f"mask {mask} is ambiguous for {queries} queries and {keys} keys",
            hint="pass the mask as a file of booleans, (queries, keys)",
        )


def _measured(subject: _Subject, rule: Tolerance, progress: Progress) -> Ranks:
    *batch, n, m = subject.source.shape
    places = list(product(*map(range, batch)))
    rows: list[MatrixRank] = []
    values: list[Tensor] = []
    with tracked(progress, "measuring", len(places)) as reported:
        for part in _parts(subject.source, max(1, min(MATRICES, STRIDE // (n * m)))):
            found = measure(part, rule)
            new = list(_rows(found, places[len(rows) :], subject))
            rows += new
            values.append(found.spectrum.values)
            reported.advance(len(new))
    return Ranks(
        rows=tuple(rows),
        singular_values=torch.cat(values),
        description=subject.description,
        shape=subject.source.shape,
        dtype=subject.dtype,
        rule=rule,
        temperature=subject.temperature,
        mask=subject.mask,
        note=_note(subject.source),
    )


def _parts(source: Tensor | LogWeights, size: int) -> Iterator[Tensor | LogWeights]:
    """Yield the flattened batch, ``size`` matrices at a time."""
    n, m = source.shape[-2:]
    if isinstance(source, LogWeights):
        values = source.values.reshape(-1, n, m).split(size)
        errors = source.row_error.reshape(-1, n).split(size)
        yield from (LogWeights(v, e) for v, e in zip(values, errors, strict=True))
    else:
        yield from source.reshape(-1, n, m).split(size)


def _rows(
    found: Measurement, places: list[tuple[int, ...]], subject: _Subject
) -> Iterator[MatrixRank]:
    columns = zip(
        places,
        found.rank,
        found.epsilon.tolist(),
        found.stable_rank.tolist(),
        found.effective_rank.tolist(),
        found.energy_rank(0.90).tolist(),
        found.energy_rank(0.99).tolist(),
        strict=False,  # places continues to the end of the whole batch
    )
    for place, count, *numbers in columns:
        yield MatrixRank(place, _explained(count, subject), *numbers)


def _explained(count: Certificate, subject: _Subject) -> Certificate:
    """Return the certificate with the reason for the stored dtype, not the one computed in."""
    if count.exact:
        return count
    logits = isinstance(subject.source, LogWeights)
    # Whole numbers are exact in float64.
    dtype = subject.dtype if subject.dtype.is_floating_point else torch.float64
    reason = reason_for_interval(count.delta, dtype, logits=logits)
    return Certificate(count.low, count.high, count.delta, count.method, reason)


def _note(source: Tensor | LogWeights) -> str | None:
    is_logits = isinstance(source, LogWeights)
    values = source.values if isinstance(source, LogWeights) else source
    sums = values.sum(-1, dtype=torch.float64)
    looks_like_weights = bool((sums - 1).abs().max() < 0.05 and values.min() >= 0)
    if is_logits and looks_like_weights:
        return "the rows already sum to one; is this attention instead of logits?"
    if not is_logits and not looks_like_weights:
        return (
            "the rows do not sum to one, and the matrix was measured as it is; "
            "if it holds logits, pass `logits=True`"
        )
    return None
