"""The state of a table for its operator, and what the table needs next."""
