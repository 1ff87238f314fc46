"""Exhibits that neither paper has: what its measurements rest on, and where they end."""
