"""Table services as a whole: their registry, rounds of them, and those that follow a write."""
