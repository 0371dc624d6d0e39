"""Repairs what broke off in a table: moves what does not belong there aside, and puts it back on request."""
