"""The timeline of a table: its instants, their bodies, and the writers at work."""
