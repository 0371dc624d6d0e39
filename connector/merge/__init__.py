"""Merge and update: conditions change rows of a table, which become upserts and deletes by key of one write."""
