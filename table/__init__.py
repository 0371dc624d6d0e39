"""A table at rest: configuration, schema, keys, names, base files, file groups, merging."""
