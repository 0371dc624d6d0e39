"""What a table whose properties do not say it shows by its files: its index, its merge rule, its zone, its keys."""
