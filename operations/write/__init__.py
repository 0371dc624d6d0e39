"""One write carried out: its tasks, its commit, and what it says of itself."""
