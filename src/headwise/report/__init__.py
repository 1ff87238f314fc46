"""Rows in, document out: figures, tables and pages."""
