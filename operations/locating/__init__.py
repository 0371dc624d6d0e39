"""The file group of each row of a write: an existing file group or a new file group."""
