"""Merges and updates as every class of tables takes them: clauses, and what they may name."""
