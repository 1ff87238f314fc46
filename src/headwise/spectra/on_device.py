"""Find the large entries of matrices on a GPU in one pass, and copy them back together.

Waiting for the GPU is what costs. This code waits twice for a size and once for the result, which
travels as one array. With Triton installed, ``on_device_triton`` does the same in one kernel.
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

from headwise.spectra.large_entries import GROUP, Found, most_groups
from headwise.spectra.scanning import group_peaks
from headwise.spectra.sources import refuse_bad_rows, refuse_not_finite


@cache
def fastest() -> ModuleType:
    """Return the module with the fastest scans here: the Triton one if it works, else this one."""
    # Triton builds what calls its kernels with a C compiler.
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if find_spec("triton") is None or not compiler:
        return import_module(__name__)
    return import_module("headwise.spectra.on_device_triton")


@dataclass(frozen=True, eq=False)
class Peaks:
    """The maximum of each group of columns and of each row; rows are numbered across the batch."""

    of_groups: Tensor
    of_rows: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Peaks:
        """Compute the peaks of a (rows, columns) tensor in float64."""
        peaks = group_peaks(rows).double()
        return cls(peaks, peaks.amax(-1))


def scan_log_weights(matrices: Tensor, reach: float) -> tuple[Found, Tensor]:
    """Find log-weights within ``reach`` of the row maximum, as differences from it.

    Returns:
        The entries, and the row maxima, which stay on the device.
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
    """Find entries of at least this absolute size."""
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
    """Return which matrices are sparse, and rows and columns of the groups hit in those."""
    batch, n, m = shape
    by_matrix = hit.reshape(batch, -1)
    sparse = by_matrix.sum(-1) <= most_groups(n, m)
    where = (by_matrix & sparse.unsqueeze(-1)).reshape(-1).nonzero().squeeze(-1)
    row = where // hit.shape[-1]
    group = where - row * hit.shape[-1]
    members = GROUP * group.unsqueeze(-1) + torch.arange(GROUP, device=hit.device)
    return sparse, row, members


def _read(flat: Tensor, row: Tensor, members: Tensor) -> Tensor:
    """Read the entries of these groups in float64; beyond the end of a row, repeat its last one."""
    m = flat.shape[-1]
    return torch.take(flat, row.unsqueeze(-1) * m + members.clamp(max=m - 1)).double()


def _fetch(
    groups: tuple[Tensor, Tensor, Tensor],
    kept: Tensor,
    facts: tuple[Tensor, Peaks],
    shape: torch.Size,
) -> tuple[Found, bool]:
    """Copy back the kept entries and whether every row has a finite peak."""
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
