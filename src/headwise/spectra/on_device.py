"""One pass over matrices on a GPU finds the entries that stand out; they come back at once.

What costs on a GPU is waiting for it. Here it is asked twice how much there is (to make room)
and once for the result, which travels as one array together with all that is asked of it.
Where Triton is at hand ``on_device_triton`` does the same in one kernel, asked once.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from headwise.spectra.found import GROUP, Found, most_groups
from headwise.spectra.scanning import group_peaks
from headwise.spectra.sources import refuse_not_finite
from headwise.spectra.weights import refuse_bad_rows


@cache
def fastest() -> ModuleType:
    """The module whose scans are the fastest on a GPU here: in Triton, or else this one.

    >>> callable(fastest().scan_log_weights)
    True
    """
    # Triton builds what calls its kernels with a C compiler.
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if find_spec("triton") is None or not compiler:
        return import_module(__name__)
    return import_module("headwise.spectra.on_device_triton")


@dataclass(frozen=True, eq=False)
class Peaks:
    """The largest of each group of columns, and of each row, rows across the batch."""

    of_groups: Tensor
    of_rows: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Peaks:
        """The peaks of a (rows, columns) tensor, in float64."""
        peaks = group_peaks(rows).double()
        return cls(peaks, peaks.amax(-1))


def scan_log_weights(matrices: Tensor, reach: float) -> tuple[Found, Tensor]:
    """Log-weights within ``reach`` of the largest of their row, as differences from it.

    The largest of each row come back too, and stay on the device.

    >>> found, top = scan_log_weights(torch.tensor([[[0.0, -99.0], [3.0, 2.0]]]).double(), 50.0)
    >>> found.values.tolist(), top.tolist()
    ([0.0, 0.0, -1.0], [0.0, 3.0])
    """
    flat = matrices.reshape(-1, matrices.shape[-1])
    peaks = Peaks.of(flat)
    hit = peaks.of_groups >= (peaks.of_rows - reach).unsqueeze(-1)
    sparse, row, members = _groups_worth_reading(hit, matrices.shape)
    # Only this difference is free of rounding when log-weights are as large as 1e9.
    found = _read(flat, row, members) - peaks.of_rows[row].unsqueeze(-1)
    kept = found >= -reach
    fetched, finite = _fetch((row, members, found), kept, (sparse, peaks), matrices.shape)
    if not finite:
        refuse_bad_rows(peaks.of_rows)
    return fetched, peaks.of_rows


def scan_matrices(matrices: Tensor, smallest: float) -> Found:
    """Entries of at least this size, whatever their sign.

    >>> found = scan_matrices(torch.tensor([[[0.0, -2.0], [3.0, 1e-9]]]).double(), 1e-6)
    >>> found.values.tolist(), found.columns.tolist()
    ([-2.0, 3.0], [1, 0])
    """
    flat = matrices.reshape(-1, matrices.shape[-1])
    peaks = Peaks.of(flat.abs())
    sparse, row, members = _groups_worth_reading(peaks.of_groups >= smallest, matrices.shape)
    found = _read(flat, row, members)
    kept = found.abs() >= smallest
    fetched, finite = _fetch((row, members, found), kept, (sparse, peaks), matrices.shape)
    if not finite:
        refuse_not_finite("the matrix", int((~peaks.of_rows.isfinite()).sum()))
    return fetched


def _groups_worth_reading(hit: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor, Tensor]:
    """Which matrices are sparse; rows and columns of the groups that were hit in those."""
    batch, n, m = shape
    by_matrix = hit.reshape(batch, -1)
    sparse = by_matrix.sum(-1) <= most_groups(n, m)
    where = (by_matrix & sparse.unsqueeze(-1)).reshape(-1).nonzero().squeeze(-1)
    row = where // hit.shape[-1]
    group = where - row * hit.shape[-1]
    members = GROUP * group.unsqueeze(-1) + torch.arange(GROUP, device=hit.device)
    return sparse, row, members


def _read(flat: Tensor, row: Tensor, members: Tensor) -> Tensor:
    """The entries of these groups in float64; beyond the end of a row, its last one."""
    m = flat.shape[-1]
    return torch.take(flat, row.unsqueeze(-1) * m + members.clamp(max=m - 1)).double()


def _fetch(
    groups: tuple[Tensor, Tensor, Tensor],
    kept: Tensor,
    facts: tuple[Tensor, Peaks],
    shape: torch.Size,
) -> tuple[Found, bool]:
    """The kept entries, numbered across the batch, and whether every row has a finite peak."""
    row, members, values = groups
    sparse, peaks = facts
    _, n, m = shape
    at = (kept & (members < m)).reshape(-1).nonzero().squeeze(-1)
    rows = row[at // GROUP]
    columns = members.reshape(-1)[at] + rows // n * m
    # float64 travels as int64: only the name of the bits changes.
    bits = values.reshape(-1)[at].view(torch.int64)
    finite = peaks.of_rows.isfinite().all().reshape(1)
    here = torch.cat((rows, columns, bits, sparse.long(), finite.long())).cpu().numpy()
    rows, columns, bits, answers = np.split(here, np.cumsum([len(at)] * 3))
    found = Found(rows, columns, bits.view(np.float64), answers[:-1].astype(bool))
    return found, bool(answers[-1])
