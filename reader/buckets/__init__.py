"""Buckets of two tables that belong together, by how their rows are hashed."""
