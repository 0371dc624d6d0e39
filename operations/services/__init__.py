"""What keeps a table small and what takes things back: clean, archive, rollback, savepoint, restore."""
