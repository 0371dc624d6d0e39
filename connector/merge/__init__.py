"""Rows of a table changed by conditions: merge and update, which become rows and deletes by key for one write."""
