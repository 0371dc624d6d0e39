"""Files to rows: what to read of a snapshot, and reading it."""
