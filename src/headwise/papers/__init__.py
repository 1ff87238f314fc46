"""Which questions each figure and table asks, and what the papers report: one file per exhibit."""
