"""Spark: the data source, its options, the session API. The only layer that imports pyspark."""
