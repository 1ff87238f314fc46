"""Exhibits of *On the Limitation and Redundancy of Transformers: A Rank Perspective*."""
