"""Compaction: merges the log files of a merge-on-read table into base files, or into fewer log files."""
