"""Rows to files: keyed, buffered, spilled, merged and written as base files."""
