"""Streaming queries: what Spark calls when one writes to a table, or reads one."""
