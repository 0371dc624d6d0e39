"""The next decision of a table: made, carried out, and what each carries along for the metadata table."""
