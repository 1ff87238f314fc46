"""Figure 3c: rank on IMDB in the first layer, for four embedding widths."""

from __future__ import annotations

from headwise.papers.rank2026.imdb_layers import layer_exhibit

FIGURE_3C = layer_exhibit("c", layer=1)
