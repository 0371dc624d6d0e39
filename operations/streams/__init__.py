"""What a table remembers of the streams that write to it."""
