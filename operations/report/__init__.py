"""The report of a table: its figures, the pictures of them, and the page that shows both."""
