"""Services that keep a table small (clean, archive, compaction) or undo writes (rollback, savepoint, restore)."""
