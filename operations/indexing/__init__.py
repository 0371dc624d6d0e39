"""What an index that lives outside of its table is told, and asked."""
