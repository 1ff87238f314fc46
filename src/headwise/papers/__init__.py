"""Which questions each figure and table asks, and what the papers print: one file per exhibit."""
