"""File slices that a query need not read, by what tables say of files: their metadata table, or the files' footers."""
