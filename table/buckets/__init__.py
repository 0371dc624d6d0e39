"""How many buckets each partition of a table with a bucket index has, and the files that say it."""
