"""Real processes that write to tables at once, and are killed and paused, and what the tables must hold afterwards."""
