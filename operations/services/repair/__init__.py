"""Repairs a table in which something broke off: moves files aside that do not belong there, and back on request."""
