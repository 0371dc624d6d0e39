"""What is told of a table without reading its rows."""
