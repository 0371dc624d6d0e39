"""Compaction: the log files of a merge-on-read table merged into base files."""
