"""The kinds of question that can be asked: one Spec per file; ``kinds`` is their closed union."""
