"""News for, and lookups in, an index that another package keeps outside of its table."""
