"""Merges and updates without an engine: rows of the source meet rows of the table, and clauses change them."""
