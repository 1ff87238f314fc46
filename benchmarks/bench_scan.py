"""Long sequences: arg-max, block products and leading spectrum of one head, checked and timed.

    python -m benchmarks.bench_scan --device cuda --out FILE.json      (about 2 minutes on an H200)
    python -m benchmarks.bench_scan --device cpu --small --out FILE.json

Every kernel is compared with dense float64 or the chunked version before it is timed. Parts are
written as they finish, so a run that is cut keeps what it has.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import provenance
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from headwise.attention import AttentionOperator, softmax_matrix, streaming_argmax
from headwise.attention.moments import moments
from headwise.spectra import leading_spectrum, spectral_density

#: Rows, columns, warps and stages of the arg-max that are tried.
CUTS = [(128, 128, 8, 3), (128, 128, 4, 3), (128, 256, 8, 3), (64, 128, 4, 4), (128, 64, 4, 4)]
CUTS += [(256, 128, 8, 3), (128, 128, 8, 4)]


def drawn(n: int, d: int, device: str, dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Gaussian queries and keys, the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    pair = (torch.randn(n, d, generator=generator) for _ in range(2))
    q, k = (each.to(device, dtype) for each in pair)
    return q, k


def seconds(act: Callable[[], Any], repeats: int = 5) -> float:
    """The least of several times, after one call that compiles."""
    act()
    times = []
    for _ in range(repeats):
        _wait()
        start = time.perf_counter()
        act()
        _wait()
        times.append(time.perf_counter() - start)
    return min(times)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak_bytes(act: Callable[[], Any]) -> int | None:
    """The most memory that a call takes beside what is there."""
    if not torch.cuda.is_available():
        return None
    _wait()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    act()
    _wait()
    return torch.cuda.max_memory_allocated() - before


def check_argmax(device: str, small: bool) -> dict[str, Any]:
    """The arg-max against the chunked one in float64: how often they differ, and by how much."""
    found: dict[str, Any] = {}
    n = 1024 if small else 16_384
    for dtype in (torch.bfloat16, torch.float32):
        for mask in ("none", "causal"):
            q, k = drawn(n, 64, device, dtype)
            ours = streaming_argmax(q, k, mask=mask, equals="exactly")
            wanted = streaming_argmax(q.double(), k.double(), mask=mask, equals="exactly")
            a, b = ((q.double() * k.double()[each]).sum(-1) for each in (wanted, ours))
            found[f"{dtype}, {mask}"] = {
                "differ": int((ours != wanted).sum()),
                "of": n,
                "largest gap": float((a - b).max()),
            }
    return found


def check_products(device: str, small: bool) -> dict[str, Any]:
    """A·X, Aᵀ·Y, leading values and ‖A‖_F against dense float64 at 1,024 tokens."""
    found: dict[str, Any] = {}
    for dtype in (torch.float32, torch.bfloat16):
        for mask in ("none", "causal"):
            q, k = drawn(1024, 64, device, dtype)
            x, y = drawn(1024, 64, device, dtype, seed=1)
            given = {"temperature": 2.0, "mask": mask}
            matrix = softmax_matrix(q.double(), k.double(), **given)
            operator = AttentionOperator(q, k, **given, dtype=dtype)
            values = torch.linalg.svdvals(matrix)
            leading = leading_spectrum(operator, 64, steps=6, dtype=dtype, device=q.device)
            size = float(values[0])
            found[f"{dtype}, {mask}"] = {
                "product": float((operator.matmat(x).double() - matrix @ x.double()).abs().max()),
                "transposed": float(
                    (operator.rmatmat(y).double() - matrix.mT @ y.double()).abs().max()
                ),
                "first value, relative": abs(float(leading.values[0]) - size) / size,
                "top 32, relative": float(
                    ((leading.values[:32] - values[:32]).abs() / values[:32]).max()
                ),
                "floor": leading.floor,
                "frobenius, relative": abs(
                    moments(q.float(), k.float(), **given).frobenius / float(matrix.norm()) - 1
                ),
            }
    return found


def time_argmax(device: str, small: bool) -> dict[str, Any]:
    """The hardmax rank of 2^20 tokens; the goal is 0.5 s, the floor 0.18 s."""
    n = 2**12 if small else 2**20
    q, k = drawn(n, 64, device, torch.bfloat16)
    found: dict[str, Any] = {"n": n, "dtype": "bfloat16"}

    def rank() -> int:
        winners = streaming_argmax(q, k)
        return int(torch.zeros(n, device=q.device).index_fill_(0, winners, 1).sum())

    found["rank / n"] = rank() / n
    found["seconds, default"] = seconds(rank, 3)
    found["peak bytes"] = peak_bytes(rank)
    if q.is_cuda:
        found["seconds, causal"] = seconds(lambda: streaming_argmax(q, k, mask="causal"), 2)
        found["cuts"] = {}
        for cut in CUTS:
            found["cuts"][str(cut)] = _timed_cut(q, k, cut)
    return found


def _timed_cut(q: Tensor, k: Tensor, cut: tuple[int, ...]) -> float | str:
    from headwise.attention.streaming_triton import Sizes, argmax

    try:
        return seconds(lambda: argmax(q[None], k[None], causal=False, sizes=Sizes(*cut)), 2)
    except Exception as error:  # a cut that does not fit is a result too
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"


def time_step(device: str, small: bool) -> dict[str, Any]:
    """One block step, A·X and Aᵀ·Y with 64 columns, beside SDPA forward and V-gradient."""
    n = 1024 if small else 131_072
    found: dict[str, Any] = {"n": n, "columns": 64}
    for dtype in (torch.bfloat16, torch.float32):
        for mask in ("none", "causal"):
            q, k = drawn(n, 64, device, dtype)
            x, y = drawn(n, 64, device, dtype, seed=1)
            operator = AttentionOperator(q, k, mask=mask, dtype=dtype)
            ours = {
                "A·X": seconds(lambda o=operator, x=x: o.matmat(x), 3),
                "Aᵀ·Y": seconds(lambda o=operator, y=y: o.rmatmat(y), 3),
            }
            row: dict[str, Any] = {"ours": ours}
            if dtype == torch.bfloat16 or small:
                row["sdpa"] = _sdpa(q, k, x, y, causal=mask == "causal")
                row["ours / sdpa"] = sum(ours.values()) / sum(row["sdpa"].values())
            found[f"{dtype}, {mask}"] = row
    return found


def _sdpa(q: Tensor, k: Tensor, x: Tensor, y: Tensor, *, causal: bool) -> dict[str, float]:
    q, k, x, y = (each[None, None] for each in (q, k, x, y))

    def forward() -> Tensor:
        return scaled_dot_product_attention(q, k, x, is_causal=causal)

    values = x.clone().requires_grad_()
    mixed = scaled_dot_product_attention(q, k, values, is_causal=causal)

    def gradient() -> Tensor:
        return torch.autograd.grad(mixed, values, y, retain_graph=True)[0]

    return {"forward": seconds(forward, 3), "V-gradient": seconds(gradient, 3)}


def time_spectrum(device: str, small: bool) -> dict[str, Any]:
    """Stable rank and 64 leading values of one head; the goal is 3 s and 2 GB."""
    n = 1024 if small else 131_072
    found: dict[str, Any] = {"n": n, "count": 64, "steps": 6}
    for dtype in (torch.float32, torch.bfloat16):
        for mask in ("none", "causal"):
            # Temperature 2 makes rows that attend to a few keys: a spectrum with a tail.
            q, k = drawn(n, 64, device, dtype)
            row = _spectrum(q, k, mask, dtype)
            found[f"{dtype}, {mask}"] = row
    q, k = drawn(n, 64, device, torch.float32)
    operator = AttentionOperator(q, k, temperature=2.0, dtype=torch.float32)

    def density() -> Any:
        return spectral_density(
            operator, probes=16, steps=16, dtype=torch.float32, device=q.device
        ).effective_rank()

    start = time.perf_counter()
    effective = density()
    _wait()
    found["effective rank, 16 probes of 16 steps, float32"] = {
        "seconds": time.perf_counter() - start,
        "mean": effective.mean,
        "standard error": effective.stderr,
    }
    return found


def _spectrum(q: Tensor, k: Tensor, mask: str, dtype: torch.dtype) -> dict[str, Any]:
    def act() -> tuple[Any, float]:
        operator = AttentionOperator(q, k, temperature=2.0, mask=mask, dtype=dtype)
        leading = leading_spectrum(operator, 64, steps=6, dtype=dtype, device=q.device)
        return leading, operator.frobenius()

    leading, frobenius = act()
    return {
        "seconds": seconds(act, 2),
        "peak bytes": peak_bytes(act),
        "stable rank": frobenius**2 / float(leading.values[0]) ** 2,
        "values 1, 2, 32, 64": [float(leading.values[i]) for i in (0, 1, 31, 63)],
        "residuals 1, 2, 32, 64": [float(leading.residuals[i]) for i in (0, 1, 31, 63)],
        "floor": leading.floor,
        "resolved": leading.resolved,
    }


PARTS = {
    "check_argmax": check_argmax,
    "check_products": check_products,
    "argmax": time_argmax,
    "step": time_step,
    "spectrum": time_spectrum,
}


def main() -> None:
    """Run the parts, writing after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    made: dict[str, Any] = {"provenance": provenance(given.device, "named in each part", 0)}
    for name in given.only.split(","):
        start = time.perf_counter()
        try:
            made[name] = PARTS[name](given.device, given.small)
        except Exception:
            made[name] = {"failed": traceback.format_exc()[-1500:]}
        made[name]["took"] = time.perf_counter() - start
        print(name, json.dumps(made[name], ensure_ascii=False), flush=True)
        given.out.write_text(json.dumps(made, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
