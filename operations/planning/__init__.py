"""What a write will do, decided before it reads any row."""
