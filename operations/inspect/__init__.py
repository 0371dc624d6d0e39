"""Information about a table, as Arrow tables."""
