"""Rows brought to the tasks that write their file groups, before they are written."""
