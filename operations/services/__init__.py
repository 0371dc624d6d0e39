"""Services that keep a table small (clean, archive, compaction) and that undo writes (rollback, savepoint, restore)."""
