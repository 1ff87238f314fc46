"""Rank curves: rank / length of a head before training, against head dimension."""
