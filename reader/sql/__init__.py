"""Reads conditions and values of a small SQL, and evaluates them on Arrow arrays, without an engine."""
