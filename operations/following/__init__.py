"""What follows each change of a table's data files: the metadata table, kept or taken out of use."""
