"""The kinds of questions that runs can ask: one Spec per file; ``kinds`` is their closed union."""
