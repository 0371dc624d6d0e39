"""File slices with log files, as their readers see them."""
