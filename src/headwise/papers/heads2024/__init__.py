"""Exhibits of Amsel, Yehudai and Bruna, *On the Benefits of Rank in Attention Layers* (2024)."""
