"""Options: their names, values, sources, and what each of them comes to."""
