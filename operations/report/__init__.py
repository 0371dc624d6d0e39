"""The report of a table: gathers its figures, draws them, and makes a page of both."""
