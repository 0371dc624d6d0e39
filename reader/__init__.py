"""Reads tables: which files and row groups a query needs, and their rows."""
