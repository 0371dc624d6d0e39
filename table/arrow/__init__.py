"""Columns as Arrow arrays and as Java sees their values: what the other rooms compute with."""
