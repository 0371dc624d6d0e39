"""What is told of a table."""
