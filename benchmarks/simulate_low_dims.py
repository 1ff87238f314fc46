"""Simulate the rank of random heads of few dimensions once, for all who ask later.

    python benchmarks/simulate_low_dims.py    # about a quarter of an hour on one core
    python benchmarks/simulate_low_dims.py --causal

Writes src/headwise/theory/low_dims.json: E[rank]/n, its standard error and the law, for head
dimensions 3 to 15 and lengths from 2 to 2²⁰, where no formula is accurate. Under a causal mask, in
low_dims_causal.json, there is none for 1 and 2 either, and every row is drawn, up to 2¹⁴.
``headwise.theory.expected`` interpolates between them. A cell whose simulation is refused is null.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from headwise.attention.masks import Causal
from headwise.errors import TooLargeError
from headwise.mask_names import MaskName
from headwise.spectra import Estimate
from headwise.theory.law_formula import law_share
from headwise.theory.montecarlo import simulate_ratio, simulate_to
from headwise.theory.neighbourhood import POISSON_FROM, neighbourhood_ratio
from headwise.theory.simulated_heads import IndependentHead

FOLDER = Path(__file__).parents[1] / "src" / "headwise" / "theory"
SEED = 2026
DIMS, CAUSAL_DIMS = range(3, 16), range(1, 16)

#: Half octaves up to where single keys can be looked at, octaves from there on.
LENGTHS = sorted(
    {2**k for k in range(1, 21)} | {3 * 2**k for k in range(11) if 3 * 2**k < POISSON_FROM}
)
CAUSAL_LENGTHS = sorted({2**k for k in range(1, 15)} | {3 * 2**k for k in range(9)})

#: The standard error asked for: of the ratio, and as a share of it.
ABSOLUTE, RELATIVE = 0.0007, 0.012
CAUSAL_ABSOLUTE = 0.0015

#: Rows drawn in all at a length from which on few causal heads say nearly all, and that length.
CAUSAL_ROWS, MANY_ROWS = 2**16, 2**12

# Draws of the first look around single keys, from which the number of draws is chosen.
_PILOT = 400


def simulated(n: int, d: int) -> Estimate | None:
    """One cell; None where the simulation is refused."""
    if n < POISSON_FROM:
        rough = simulate_to(IndependentHead(n, d), 5 * ABSOLUTE, SEED)
        return simulate_to(IndependentHead(n, d), min(ABSOLUTE, RELATIVE * rough.mean), SEED + 1)
    try:
        rough = neighbourhood_ratio(n, d, _PILOT, SEED)
        excess = rough.stderr / (RELATIVE * rough.mean)
        return neighbourhood_ratio(n, d, int(_PILOT * max(excess, 1.0) ** 2), SEED + 1)
    except TooLargeError:
        return None


def simulated_causal(n: int, d: int) -> Estimate:
    """One cell under a causal mask."""
    head = IndependentHead(n, d)
    if n >= MANY_ROWS:
        return simulate_ratio(head, CAUSAL_ROWS // n, SEED + 1, mask=Causal())
    rough = simulate_to(head, 5 * CAUSAL_ABSOLUTE, SEED, mask=Causal())
    goal = min(CAUSAL_ABSOLUTE, RELATIVE * rough.mean)
    return simulate_to(head, goal, SEED + 1, mask=Causal())


def main() -> None:
    """Every cell, written after each head dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--causal", action="store_true", help="row i picks among the first i keys")
    causal = parser.parse_args().causal
    lengths, dims = (CAUSAL_LENGTHS, CAUSAL_DIMS) if causal else (LENGTHS, DIMS)
    mask: MaskName = "causal" if causal else "none"
    path = FOLDER / ("low_dims_causal.json" if causal else "low_dims.json")
    table: dict[str, object] = {"lengths": lengths, "seed": SEED, "head_dims": {}}
    for d in dims:
        found = [simulated_causal(n, d) if causal else simulated(n, d) for n in lengths]
        table["head_dims"][str(d)] = {  # type: ignore[index]
            "ratio": [None if e is None else round(e.mean, 8) for e in found],
            "stderr": [None if e is None else float(f"{e.stderr:.2g}") for e in found],
            "law": [float(f"{x:.9g}") for x in law_share(lengths, d, mask)],
        }
        path.write_text(json.dumps(table, indent=1) + "\n")
        print(d, flush=True)


if __name__ == "__main__":
    main()
