"""Sorts the base files of a table in place: the same file groups, with new base files in the table's order."""
