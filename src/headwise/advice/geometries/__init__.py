"""Geometries: which ones to offer, how many heads they have, what they cost and can do."""
