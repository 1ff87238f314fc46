"""Attention layers, and the matrices they make."""
