"""Log files: their blocks, what is in them, and which of them count."""
