"""Figure 3d: rank on IMDB in the second layer, for four embedding widths."""

from __future__ import annotations

from headwise.papers.rank2026.imdb_layers import layer_exhibit

FIGURE_3D = layer_exhibit("d", layer=2)
