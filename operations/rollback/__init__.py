"""Dead writes found, undone and forgotten."""
