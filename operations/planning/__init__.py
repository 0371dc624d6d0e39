"""What one write will do, decided before any row is seen."""
