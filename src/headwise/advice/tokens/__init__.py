"""Tokens: read from any source, embedded as a model at initialisation embeds them, described."""
