"""Brings rows to the Spark tasks that write their file groups."""
