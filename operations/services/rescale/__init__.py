"""Rescale: divides the rows of a bucket table's partitions into another number of buckets."""
