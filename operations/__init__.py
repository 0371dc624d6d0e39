"""One write, rollback and history: transactions over the table, without an engine."""
