"""Joins and aggregations by bucket, for which Spark moves no rows."""
