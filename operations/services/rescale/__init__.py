"""Rescale: the rows of a bucket table's partitions divided into another number of buckets."""
