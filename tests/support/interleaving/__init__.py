"""Writers and services of one table in one process, whose storage steps a scheduler interleaves."""
