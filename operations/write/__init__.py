"""The execution of one write: its tasks, its commit, and its metrics."""
