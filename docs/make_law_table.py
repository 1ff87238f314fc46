"""Write the answers of the law view to every place of its sliders: src/headwise/web/law.json.

python docs/make_law_table.py computes for some minutes. The page and the documentation site read
the file, because a causal law takes longer than a hand that moves a slider.
"""

from __future__ import annotations

import json
import sys
from typing import get_args

from headwise.mask_names import MaskName
from headwise.web.law_table import FILE, HEAD_DIMS, LENGTHS, computed


def main() -> None:
    """Compute every entry and write the file."""
    found = {}
    for mask in get_args(MaskName):
        for length in LENGTHS:
            found[f"{length} {mask}"] = computed(length, mask)
            print(length, mask, found[f"{length} {mask}"]["critical"], file=sys.stderr, flush=True)
    text = json.dumps({"head_dims": HEAD_DIMS, "answers": found}, separators=(",", ":"))
    FILE.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
