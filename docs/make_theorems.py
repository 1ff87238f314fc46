"""Write docs/theorems.md from the index of statements: python docs/make_theorems.py."""

from __future__ import annotations

from pathlib import Path

from headwise.theory.theorems import index_page

if __name__ == "__main__":
    Path(__file__).with_name("theorems.md").write_text(index_page(), encoding="utf-8")
