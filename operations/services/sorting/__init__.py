"""Sorts a table in place: its file groups get new base files in the table's order."""
