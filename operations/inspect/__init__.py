"""Queries about a table, whose results are Arrow tables."""
