"""Simulate the rank of random heads of dimension 3 to 15 once, for all who ask later.

    python benchmarks/simulate_low_dims.py    # about a quarter of an hour on one core

Writes src/headwise/theory/low_dims.json: E[rank]/n and its standard error for lengths from 2 to
2²⁰, where no formula is accurate. ``headwise.theory.ready`` interpolates between them. A cell
whose simulation is refused is null.
"""

from __future__ import annotations

import json
from pathlib import Path

from headwise.errors import TooLargeError
from headwise.spectra import Estimate
from headwise.theory.ensembles import IndependentHead
from headwise.theory.montecarlo import simulate_to
from headwise.theory.neighbourhood import POISSON_FROM, neighbourhood_ratio

TABLE = Path(__file__).parents[1] / "src" / "headwise" / "theory" / "low_dims.json"
SEED = 2026
DIMS = tuple(range(3, 16))

#: Half octaves up to where single keys can be looked at, octaves from there on.
LENGTHS = sorted(
    {2**k for k in range(1, 21)} | {3 * 2**k for k in range(11) if 3 * 2**k < POISSON_FROM}
)

#: The standard error asked for: of the ratio, and as a share of it.
ABSOLUTE, RELATIVE = 0.0007, 0.012

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


def main() -> None:
    """Every cell, written after each head dimension."""
    table: dict[str, object] = {"lengths": LENGTHS, "seed": SEED, "head_dims": {}}
    for d in DIMS:
        found = [simulated(n, d) for n in LENGTHS]
        table["head_dims"][str(d)] = {  # type: ignore[index]
            "ratio": [None if e is None else round(e.mean, 8) for e in found],
            "stderr": [None if e is None else float(f"{e.stderr:.2g}") for e in found],
        }
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
        print(d, flush=True)


if __name__ == "__main__":
    main()
