"""Spark's data source, in each of Spark's processes."""
