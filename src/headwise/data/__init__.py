"""Tokens to measure and to train on."""
