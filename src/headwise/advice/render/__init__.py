"""Render the answer: one document, shown in a terminal, as HTML, Markdown or text."""
