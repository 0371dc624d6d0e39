"""Services of the metadata table: built, dropped, compacted, cleaned and archived."""
