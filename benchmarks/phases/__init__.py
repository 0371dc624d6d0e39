"""What one process of the run does and times."""
