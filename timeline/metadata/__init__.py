"""What stands inside of instants: their bodies as values, and between values and bytes."""
