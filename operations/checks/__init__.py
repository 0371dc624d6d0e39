"""What can be wrong with a table, by subject; every check tells what it finds and raises nothing for it."""
