"""Reads the rows that given record keys may have: only the file slices that may hold them, and only these rows."""
