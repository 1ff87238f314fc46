"""Write gallery.md: the figure of every exhibit, small, with a link to its section.

python docs/make_gallery.py takes titles from the catalogue and figures from docs/figures/exhibits.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from headwise.papers.catalogue import ENTRIES

HERE = Path(__file__).parent
FIGURES = HERE / "figures" / "exhibits"
PARTS = {
    "rank2026": "The rank paper",
    "heads2024": "The heads paper",
    "beyond": "Beyond the papers",
}


def gallery() -> str:
    """The page."""
    parts = ["# Gallery\n\nEvery figure that headwise draws from recorded rows. "]
    parts.append("Click one to see the published values, what was measured, and what disagrees.\n")
    for folder, title in PARTS.items():
        names = [entry for entry in ENTRIES if entry.name.startswith(f"{folder}/")]
        cards = [_card(entry.name, entry.title) for entry in names if _figure(entry.name).exists()]
        parts.append(f'\n## {title}\n\n<div class="gallery">\n{"".join(cards)}</div>\n')
    return "".join(parts)


def _figure(name: str) -> Path:
    return FIGURES / f"{name.replace('/', '_')}.svg"


def _card(name: str, title: str) -> str:
    image = f"figures/exhibits/{_figure(name).name}"
    words = escape(title)
    link = f"exhibits.html#{name.replace('/', '-')}"
    return f'<a href="{link}"><img src="{image}" alt="" loading="lazy"><span>{words}</span></a>\n'


def main() -> None:
    """Write the page."""
    (HERE / "gallery.md").write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    main()
