"""What happened to a table: instants, their contents, and who is at work on them."""
