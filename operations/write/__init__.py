"""The execution of one write: its tasks, its commit, and what follows the commit."""
