"""Spark's data source: what it is given and hands back, in each of its processes."""
