"""What figures are held against, and how they are drawn."""
