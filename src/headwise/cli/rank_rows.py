"""What ``headwise rank`` measures: one row per matrix of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from headwise.cli.console import dtype_name
from headwise.cli.progress_bar import progress_bar
from headwise.cli.rank_input import Subject
from headwise.progress import tracked
from headwise.spectra import Certificate, LogWeights, Measurement, Tolerance, measure
from headwise.spectra.certificate import reason_for_interval

#: Entries measured at a time: few enough to bound memory and to move the progress bar.
STRIDE = 2**23

#: Matrices measured at a time, however small they are.
MATRICES = 64


@dataclass(frozen=True)
class Row:
    """What was measured of one matrix, and its place in the batch."""

    place: tuple[int, ...]
    count: Certificate
    epsilon: float
    stable_rank: float
    effective_rank: float
    energy_rank_90: int
    energy_rank_99: int


def measured(subject: Subject, rule: Tolerance) -> list[Row]:
    """One row per matrix of the batch."""
    *batch, n, m = subject.values.shape
    places = list(product(*map(range, batch)))
    rows: list[Row] = []
    with tracked(progress_bar(), "measuring", len(places)) as progress:
        for part in _parts(subject.source, max(1, min(MATRICES, STRIDE // (n * m)))):
            found = list(_rows(measure(part, rule), places[len(rows) :]))
            rows += found
            progress.advance(len(found))
    return rows


def _parts(source: torch.Tensor | LogWeights, size: int) -> Iterator[torch.Tensor | LogWeights]:
    """The batch, flattened, ``size`` matrices at a time."""
    n, m = source.shape[-2:]
    if isinstance(source, LogWeights):
        values = source.values.reshape(-1, n, m).split(size)
        errors = torch.as_tensor(source.error).expand(source.shape[:-1]).reshape(-1, n).split(size)
        yield from (LogWeights(v, e) for v, e in zip(values, errors, strict=True))
    else:
        yield from source.reshape(-1, n, m).split(size)


def _rows(found: Measurement, places: list[tuple[int, ...]]) -> Iterator[Row]:
    columns = zip(
        places,
        found.rank,
        found.epsilon.tolist(),
        found.stable_rank.tolist(),
        found.effective_rank.tolist(),
        found.energy_rank(0.90).tolist(),
        found.energy_rank(0.99).tolist(),
        strict=False,  # places runs on to the end of the whole batch
    )
    return (Row(place, *values) for place, *values in columns)


def reason(row: Row, subject: Subject) -> str | None:
    """Why the rank is an interval, and what would make it one number; None where it is one."""
    if row.count.exact:
        return None
    logits = isinstance(subject.source, LogWeights)
    return reason_for_interval(row.count.delta, subject.dtype, logits=logits)


def as_object(row: Row, subject: Subject) -> dict[str, Any]:
    """One row as it appears in JSON."""
    where = {"index": list(row.place)} if row.place else {}
    return where | {
        "rank": {"low": row.count.low, "high": row.count.high},
        "method": row.count.method,
        "tolerance": row.epsilon,
        "dtype": dtype_name(subject.dtype),
        "shape": list(subject.values.shape[-2:]),
        "stable_rank": row.stable_rank,
        "effective_rank": row.effective_rank,
        "energy_rank_90": row.energy_rank_90,
        "energy_rank_99": row.energy_rank_99,
        "delta": row.count.delta,
        "reason": reason(row, subject),
        "temperature": subject.temperature,
        "mask": subject.mask,
    }
