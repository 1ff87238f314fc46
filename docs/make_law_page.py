"""Write the interactive law page of the site into docs/assets/law; make docs calls this.

It is the law view of the local page with a file of answers in place of the server: the law at every
place of the sliders, and one random head for each of up to 128 tokens.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from jinja2 import Environment, FileSystemLoader
from plotly.offline import get_plotlyjs

from headwise import web
from headwise.web import law_table
from headwise.web.answers import simulated_head

WEB = Path(web.__file__).parent
OUT = Path(__file__).parent / "assets" / "law"
MOST_TOKENS = 128

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The law of random heads · headwise</title><link rel="stylesheet" href="style.css"></head>
<body><main id="main">{content}</main>
<script src="plotly.js" defer></script><script src="answers.js" defer></script>
<script src="law.js" defer></script></body></html>
"""


def heads() -> dict[str, dict[str, object]]:
    """One random head for each length up to 128, each head dimension and each mask."""
    found = {}
    for mask in ("none", "causal"):
        for length in (n for n in law_table.LENGTHS if n <= MOST_TOKENS):
            for dim in law_table.HEAD_DIMS:
                one = simulated_head(length, dim, mask, 0)
                picks = torch.tensor(one["weights"]).argmax(-1).tolist()
                kept = {"picks": picks, "low": one["low"], "high": one["high"]}
                found[f"{length} {dim} {mask}"] = kept
    return found


def bundled(scripts: list[Path]) -> str:
    """Modules as one plain script: browsers load no modules from files, only from servers."""
    lines = [line for each in scripts for line in each.read_text(encoding="utf-8").splitlines()]
    kept = [line.removeprefix("export ") for line in lines if not line.startswith("import ")]
    return "(() => {\n" + "\n".join(kept) + "\n})();\n"


def main() -> None:
    """Write the page, its scripts and its answers."""
    OUT.mkdir(parents=True, exist_ok=True)
    static = WEB / "static"
    shutil.copy(static / "style.css", OUT / "style.css")
    (OUT / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
    own = [static / name for name in ("common.js", "figures.js", "law.js")]
    script = bundled([Path(__file__).with_name("stored_law.js"), *own])
    (OUT / "law.js").write_text(script, encoding="utf-8")
    templates = Environment(loader=FileSystemLoader(WEB / "templates"), autoescape=True)
    content = templates.get_template("law_content.html").render(site=True)
    (OUT / "index.html").write_text(PAGE.format(content=content), encoding="utf-8")
    table = json.loads(law_table.FILE.read_text(encoding="utf-8"))
    known = json.dumps(table | {"heads": heads(), "most": MOST_TOKENS}, separators=(",", ":"))
    (OUT / "answers.js").write_text(f"window.headwiseTable = {known};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
