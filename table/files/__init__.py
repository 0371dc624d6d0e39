"""Data files: their names, their contents, and which of them make up a table at a moment."""
