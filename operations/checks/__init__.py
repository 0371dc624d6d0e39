"""What can be wrong with a table, by subject; each check reports what it finds and raises no error for it."""
